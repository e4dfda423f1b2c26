#include "format/tensor_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "archive.h"
#include "format/file_gather.h"
#include "format/pickle.h"
#include "format/widen.h"
#include "tensor/block_reader.h"
#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::archive;
using test::bytes;
using test::bytes_of;
using test::pattern;
using test::ScratchFile;
using test::Sizes;
using testing::HasSubstr;

std::string read(const TensorFileReader& reader, std::uint64_t offset, std::size_t count) {
  std::string out(count, '\0');
  reader.read(offset, std::as_writable_bytes(std::span(out)));
  return out;
}
std::string read_all(const TensorFileReader& reader) {
  return read(reader, 0, static_cast<std::size_t>(reader.total_bytes()));
}

std::string written_pt(DType dtype, const Sizes& shape, const Sizes& strides, std::string_view data) {
  return test::written([&](NewFile& file) { return make_pt_writer(file, dtype, shape, strides); }, data, 1000);
}
std::string written_npy(DType dtype, const Sizes& shape, std::string_view data) {
  return test::written([&](NewFile& file) { return make_npy_writer(file, dtype, shape); }, data, 1000);
}

struct Tensor {
  DType dtype = DType::kInt16;
  Sizes shape;
  Sizes strides;
  std::string storage;
  int first = 0;  // below 256
  bool negate_real = false;
  bool negate_imag = false;
};

// As torch.save pickles a view, offset, flags and all.
std::string torch_pickle(const Tensor& t) {
  const auto storage_numel = static_cast<std::int64_t>(t.storage.size() / dtype_info(t.dtype).item_bytes);
  std::string pickle = pickle_tensor(t.dtype, t.shape, t.strides, storage_numel);
  pickle = test::patched(pickle, bytes("QK\x00"), "QK" + std::string(1, static_cast<char>(t.first)));
  if (t.negate_real || t.negate_imag) {
    // {"conj": ..., "neg": ...} as the last argument, before the closing TUPLE BINPUT REDUCE BINPUT STOP
    const auto flag = [](bool set) { return std::string(1, set ? '\x88' : '\x89'); };
    const std::string metadata = "}(X" + bytes("\x04\0\0\0conj") + flag(t.negate_real != t.negate_imag) + "X" +
                                 bytes("\x03\0\0\0neg") + flag(t.negate_real) + "u";
    pickle.insert(pickle.size() - 7, metadata);
  }
  return pickle;
}

std::string torch_file(const Tensor& t, bool deflated = false) {
  return archive(
      {{"x/data.pkl", torch_pickle(t), deflated}, {"x/byteorder", "little"}, {"x/data/0", t.storage, deflated}});
}

// The logical bytes by a plain loop over all indexes.
std::string gathered(const Tensor& t) {
  const auto item = static_cast<std::int64_t>(dtype_info(t.dtype).item_bytes);
  std::string out;
  Sizes index(t.shape.size(), 0);
  if (std::ranges::find(t.shape, 0) != t.shape.end()) return out;
  while (true) {
    std::int64_t at = t.first;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * t.strides[i];
    out += t.storage.substr(static_cast<std::size_t>(at * item), static_cast<std::size_t>(item));
    std::size_t i = index.size();
    while (i > 0 && ++index[i - 1] == t.shape[i - 1]) index[--i] = 0;
    if (i == 0) return out;
  }
}

template <class Expected>
std::string message_of(std::string_view file) {
  const ScratchFile scratch(file);
  try {
    const TensorFileReader reader(scratch.path());
  } catch (const Expected& error) {
    EXPECT_THAT(error.what(), HasSubstr(scratch.path()));
    return error.what();
  }
  return "none";
}
const auto damage = message_of<FormatError>;
const auto unsupported = message_of<UnsupportedFile>;

TEST(TensorFileReader, ReadsBackWhatThePtWriterWroteInEveryDtype) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string data = pattern(std::size_t{60} * dtype_info(dtype).item_bytes);
    const ScratchFile scratch(written_pt(dtype, {3, 4, 5}, {20, 5, 1}, data));
    const TensorFileReader reader(scratch.path());
    EXPECT_EQ(reader.info().format, FileFormat::kPt);
    EXPECT_EQ(reader.info().dtype, dtype);
    EXPECT_EQ(reader.info().shape, (Sizes{3, 4, 5}));
    EXPECT_TRUE(reader.info().is_contiguous);
    EXPECT_EQ(reader.info().stored_bytes, data.size());
    EXPECT_EQ(reader.info().device, "cpu");
    EXPECT_EQ(reader.numel(), 60);
    EXPECT_EQ(read_all(reader), data);
    reader.verify_checksums();
  }
}

TEST(TensorFileReader, ReadsBackWhatTheNpyWriterWroteInEveryDtype) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string data = pattern(std::size_t{60} * dtype_info(dtype).item_bytes);
    const ScratchFile scratch(written_npy(dtype, {3, 4, 5}, data));
    const TensorFileReader reader(scratch.path());
    EXPECT_EQ(reader.info().format, FileFormat::kNpy);
    EXPECT_EQ(reader.info().dtype, widened_dtype(dtype));
    std::string expected = data;
    if (const std::size_t floats = floats_per_item(dtype); floats != 0) {
      std::vector<float> values(60 * floats);
      widen(dtype, bytes_of(data), values);
      expected = test::memory_of(values);
    }
    EXPECT_EQ(read_all(reader), expected);
    reader.verify_checksums();
  }
}

TEST(TensorFileReader, RepeatsBroadcastDimensionsOfThePtWriter) {
  const ScratchFile scratch(written_pt(DType::kUint8, {2, 3, 2}, {0, 1, 0}, "abc"));
  const TensorFileReader reader(scratch.path());
  EXPECT_FALSE(reader.info().is_contiguous);
  EXPECT_EQ(reader.info().stored_bytes, 3U);
  EXPECT_EQ(read_all(reader), "aabbccaabbcc");
}

TEST(TensorFileReader, ReadsTensorsWithoutElementsAndWithoutDimensions) {
  const ScratchFile empty(written_pt(DType::kInt64, {3, 0, 2}, {2, 2, 1}, ""));
  EXPECT_EQ(TensorFileReader(empty.path()).total_bytes(), 0U);
  const ScratchFile empty_npy(written_npy(DType::kInt64, {3, 0, 2}, ""));
  EXPECT_EQ(read_all(TensorFileReader(empty_npy.path())), "");
  const ScratchFile scalar(written_pt(DType::kInt16, {}, {}, "ab"));
  EXPECT_EQ(read_all(TensorFileReader(scalar.path())), "ab");
  const ScratchFile scalar_npy(written_npy(DType::kInt16, {}, "ab"));
  EXPECT_EQ(TensorFileReader(scalar_npy.path()).info().shape, Sizes{});
}

TEST(TensorFileReader, ReadsAnyPartOfAnyViewLikeAnIndexLoop) {
  std::mt19937 random(1);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  for (int round = 0; round < 300; ++round) {
    Tensor t;
    t.dtype = static_cast<DType>(below(static_cast<int>(kDTypeCount)));
    const auto item = std::size_t{dtype_info(t.dtype).item_bytes};
    t.first = below(100);
    std::int64_t end = t.first + 1;
    for (int dims = below(5); dims > 0; --dims) {
      t.shape.push_back(1 + below(5));
      t.strides.push_back(below(20));
      end += (t.shape.back() - 1) * t.strides.back();
    }
    t.storage = pattern(static_cast<std::size_t>(end + below(10)) * item);
    const std::string expected = gathered(t);
    const ScratchFile scratch(torch_file(t, round % 3 == 0));
    const TensorFileReader reader(scratch.path());
    ASSERT_EQ(read_all(reader), expected);
    for (int part = 0; part < 5; ++part) {
      const auto elements = static_cast<int>(expected.size() / item);
      const int from = below(elements + 1);
      const int count = below(elements - from + 1);
      ASSERT_EQ(read(reader, static_cast<std::size_t>(from) * item, static_cast<std::size_t>(count) * item),
                expected.substr(static_cast<std::size_t>(from) * item, static_cast<std::size_t>(count) * item));
    }
  }
}

TEST(TensorFileReader, GathersFromTheFileLikeFromMemory) {
  std::mt19937 random(2);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  constexpr std::size_t kHead = 77;
  for (int round = 0; round < 100; ++round) {
    const auto dtype = static_cast<DType>(below(static_cast<int>(kDTypeCount)));
    const std::int64_t item = dtype_info(dtype).item_bytes;
    Sizes shape;
    Sizes strides;
    std::int64_t first = 0;
    std::int64_t last = 0;
    for (int dims = 1 + below(3); dims > 0; --dims) {
      shape.push_back(1 + below(12));
      strides.push_back((below(3) - 1) * std::int64_t{1 + below(round % 2 == 0 ? 3 : 3000)});
      const std::int64_t reach = (shape.back() - 1) * strides.back();
      (reach < 0 ? first : last) += reach;
    }
    const std::string storage = pattern(static_cast<std::size_t>((last - first + 1) * item));
    const ScratchFile scratch(std::string(kHead, 'h') + storage);
    const InputFile file(scratch.path());
    const TensorView view{bytes_of(storage).data() - first * item, dtype, shape, strides};
    StridedCursor in_memory(make_layout(view, ReadOrder::kLogical));
    StridedCursor in_file(make_layout({nullptr, dtype, shape, strides}, ReadOrder::kLogical));
    while (in_memory.remaining() > 0) {
      const auto count = static_cast<std::size_t>((1 + below(50)) * item);
      std::string expected(count, '\0');
      std::string found(count, '\0');
      in_memory.fill(std::as_writable_bytes(std::span(expected)));
      gather_from_file(file, kHead + static_cast<std::uint64_t>(-first * item), static_cast<std::size_t>(item), in_file,
                       std::as_writable_bytes(std::span(found)));
      ASSERT_EQ(found, expected);
    }
    EXPECT_EQ(in_file.remaining(), 0);
  }
}

TEST(TensorFileReader, ReadsFortranOrderLargerThanItKeepsInMemory) {
  constexpr std::int64_t kRows = 9000;
  constexpr std::int64_t kColumns = 8000;
  std::string header =
      bytes("\x93NUMPY\x01\x00\x76\x00") + "{'descr': '|u1', 'fortran_order': True, 'shape': (9000, 8000), }";
  header.resize(127, ' ');
  const std::string data = pattern(kRows * kColumns);
  const ScratchFile scratch(header + "\n" + data);
  const TensorFileReader reader(scratch.path());
  EXPECT_FALSE(reader.info().is_contiguous);
  EXPECT_GT(reader.block_bytes(), kBlockBytes);
  for (const std::int64_t from : {std::int64_t{0}, std::int64_t{12345}, kRows * kColumns - 30000}) {
    const std::string found = read(reader, static_cast<std::uint64_t>(from), 30000);
    for (std::int64_t i = 0; i < 30000; ++i) {
      const std::int64_t row = (from + i) / kColumns;
      const std::int64_t column = (from + i) % kColumns;
      ASSERT_EQ(found[static_cast<std::size_t>(i)], data[static_cast<std::size_t>(column * kRows + row)]);
    }
  }
}

TEST(TensorFileReader, AppliesTheFlagsOfLazyViews) {
  const std::vector<float> values = {1, 2, -3, 4};
  Tensor t{DType::kComplex64, {2}, {1}, test::memory_of(values)};
  t.negate_imag = true;
  const ScratchFile conjugated(torch_file(t));
  EXPECT_EQ(read_all(TensorFileReader(conjugated.path())), test::memory_of(std::vector<float>{1, -2, -3, -4}));
  t.negate_real = true;
  const ScratchFile negated(torch_file(t, true));
  const TensorFileReader reader(negated.path());
  EXPECT_EQ(read_all(reader), test::memory_of(std::vector<float>{-1, -2, 3, -4}));
  EXPECT_TRUE(reader.info().negate_real);
}

TEST(TensorFileReader, ReadsFromSeveralThreads) {
  Tensor t{DType::kInt32, {300, 200}, {1, 300}, pattern(std::size_t{4} * 60000)};
  const std::string expected = gathered(t);
  const ScratchFile scratch(torch_file(t));
  const TensorFileReader reader(scratch.path());
  std::vector<std::string> found(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] { found[i] = read(reader, i * 60000, 60000); });
    }
  }
  EXPECT_EQ(found[0] + found[1] + found[2] + found[3], expected);
}

TEST(TensorFileReader, RefusesARequestOutsideTheTensor) {
  const ScratchFile scratch(written_pt(DType::kInt16, {3}, {1}, "abcdef"));
  const TensorFileReader reader(scratch.path());
  EXPECT_EQ(read(reader, 6, 0), "");
  EXPECT_THROW(read(reader, 4, 4), StateError);
  EXPECT_THROW(read(reader, 8, 0), StateError);
  EXPECT_THROW(read(reader, 1, 2), StateError);
  EXPECT_THROW(read(reader, ~std::uint64_t{1}, 4), StateError);
}

TEST(TensorFileReader, TellsAFileThatShrankFromAWholeOne) {
  const std::string file = written_npy(DType::kUint8, {1000}, pattern(1000));
  const ScratchFile scratch(file);
  const TensorFileReader reader(scratch.path());
  scratch.write(file.substr(0, file.size() - 10));
  EXPECT_EQ(read(reader, 0, 900), pattern(900));
  EXPECT_THROW(read(reader, 900, 100), FormatError);
}

TEST(TensorFileReader, FindsDamagedElementsByTheirCrc) {
  const ScratchFile scratch(test::patched(written_pt(DType::kUint8, {5}, {1}, "hello"), "hello", "hellO"));
  const TensorFileReader reader(scratch.path());
  try {
    reader.verify_checksums();
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"archive/data/0\""));
  }
}

TEST(TensorFileReader, RefusesElementsOutsideTheStorage) {
  Tensor t{DType::kInt32, {3}, {4}, pattern(36)};
  EXPECT_EQ(damage(torch_file(t)), "none");
  t.first = 1;
  EXPECT_THAT(damage(torch_file(t)), HasSubstr("from 1 to 9 of the storage, wanted some of the 9"));
  // A stride of -4: 258 is written with as many bytes.
  const auto with_stride_minus_4 = [&](int first) {
    t.first = first;
    t.strides = {258};
    const std::string pickle = test::patched(torch_pickle(t), bytes("M\x02\x01\x85"), bytes("\x8A\x01\xFC\x85"));
    return damage(archive({{"data.pkl", pickle}, {"data/0", t.storage}}));
  };
  EXPECT_EQ(with_stride_minus_4(8), "none");
  EXPECT_THAT(with_stride_minus_4(7), HasSubstr("from -1 to 7"));
  t.strides = {std::int64_t{1} << 62U};
  EXPECT_THAT(damage(torch_file(t)), HasSubstr("out of all bounds"));
  t.shape = {std::int64_t{1} << 40U, std::int64_t{1} << 40U};
  t.strides = {0, 0};
  EXPECT_THAT(damage(torch_file(t)), HasSubstr("2^63"));
  t.shape = {std::int64_t{1} << 50U};
  t.strides = {0};
  EXPECT_THAT(unsupported(torch_file(t)), HasSubstr("1 TiB at most"));
}

TEST(TensorFileReader, RefusesAPtThatContradictsItself) {
  const Tensor t{DType::kInt32, {9}, {1}, pattern(36)};
  const std::string pickle = pickle_tensor(t.dtype, t.shape, t.strides, 9);
  EXPECT_THAT(damage(archive({{"x/data.pkl", pickle}})), HasSubstr("no entry \"x/data/0\""));
  EXPECT_THAT(damage(archive({{"x/data.pkl", pickle}, {"x/data/0", pattern(35)}})), HasSubstr("of 35 bytes"));
  EXPECT_THAT(damage(archive({{"x/data.pkl", pickle}, {"x/data/0", pattern(40)}})), HasSubstr("of 40 bytes"));
  EXPECT_EQ(damage(archive({{"x/data.pkl", pickle}, {"x/data/0", pattern(39)}})), "none");
  EXPECT_THAT(damage(archive({{"x/data.pkl", pickle}, {"y/data.pkl", pickle}})), HasSubstr("two entries"));
  EXPECT_THAT(damage(archive({{"x/data", pickle}})), HasSubstr("data.pkl"));
  EXPECT_EQ(damage(archive({{"data/0", pattern(36)}, {"data.pkl", pickle}})), "none");
}

TEST(TensorFileReader, NamesKindsOfFilesThatItDoesNotRead) {
  const std::string pickle = pickle_tensor(DType::kUint8, Sizes{1}, Sizes{1}, 1);
  const auto with_order = [&](const std::string& order) {
    return archive({{"x/data.pkl", pickle}, {"x/byteorder", order}, {"x/data/0", "1"}});
  };
  EXPECT_THAT(unsupported(with_order("big")), HasSubstr("big-endian"));
  EXPECT_THAT(damage(with_order("middle")), HasSubstr("byte order"));
  EXPECT_THAT(unsupported(bytes("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19.")),
              HasSubstr("before PyTorch 1.6"));
  EXPECT_THAT(unsupported("\x80\x04N."), HasSubstr("pickle of Python"));
  EXPECT_THAT(unsupported(archive({{"a.npy", ""}})), HasSubstr(".npz"));
  EXPECT_THAT(unsupported(archive({{"x/data.pkl", "}."}})), HasSubstr("a dict"));
  EXPECT_THAT(unsupported(archive({{"x/data.pkl", std::string((256U << 10U) + 1, 'N')}})), HasSubstr("a pickle of"));
  EXPECT_THAT(damage(""), HasSubstr("an empty file"));
  EXPECT_THAT(damage("hello"), HasSubstr("neither"));
}

std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string file = "\x93NUMPY" + std::string(1, static_cast<char>(major)) + std::string(1, '\0');
  if (major == 1) {
    append_little_endian(file, static_cast<std::uint16_t>(dictionary.size()));
  } else {
    append_little_endian(file, static_cast<std::uint32_t>(dictionary.size()));
  }
  return file + dictionary + data;
}

TEST(TensorFileReader, ReadsEveryHeaderThatNumpyWrites) {
  for (const char* dictionary : {"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }   \n",
                                 "{'descr': '<i2', 'fortran_order': True, 'shape': (2L, 3L), }\n",
                                 "{\"shape\":(2,3,),\"fortran_order\":True,\"descr\":\"=i2\"}",
                                 "  {\n 'shape' : ( 2 , 3 ) ,\t'descr':'|i2', 'fortran_order' :True}"}) {
    for (const int major : {1, 2, 3}) {
      const ScratchFile scratch(npy(dictionary, "AaBbCcDdEeFf", major));
      const TensorFileReader reader(scratch.path());
      EXPECT_EQ(reader.info().shape, (Sizes{2, 3}));
      EXPECT_EQ(reader.info().dtype, DType::kInt16);
      EXPECT_EQ(read_all(reader), "AaCcEeBbDdFf");
    }
  }
}

TEST(TensorFileReader, RefusesHeadersThatNumpyDoesNotWrite) {
  for (const char* dictionary :
       {"", "{", "{}", "[]", "{'descr': '<i2', 'fortran_order': True}",
        "{'descr': '<i2', 'fortran_order': 1, 'shape': ()}", "{'descr': '<i2', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1,,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<i2, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': 'i2', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<x2', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}"}) {
    EXPECT_NE(damage(npy(dictionary, "ab")), "none") << dictionary;
  }
  const std::string good = "{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}";
  EXPECT_EQ(damage(npy(good, "ab")), "none");
  EXPECT_THAT(damage(npy(good, "ab", 4)), HasSubstr("version 4.0"));
  EXPECT_THAT(damage(bytes("\x93NUMPY\x02\x00\xFF\xFF\xFF\x7F")), HasSubstr("a header of 2147483647 bytes"));
}

TEST(TensorFileReader, NamesNpyElementsThatItDoesNotRead) {
  const auto of = [](const std::string& descr) {
    return unsupported(npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,)}", "12345678"));
  };
  EXPECT_THAT(of("'>f8'"), HasSubstr("big-endian"));
  EXPECT_THAT(of("'|O'"), HasSubstr("'|O'"));
  EXPECT_THAT(of("'<U2'"), HasSubstr("'<U2'"));
  EXPECT_THAT(of("'<f16'"), HasSubstr("'<f16'"));
  EXPECT_THAT(of("[('a', '<f8')]"), HasSubstr("records"));
}

TEST(TensorFileReader, ComparesTheSizeOfANpyWithItsShape) {
  const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}";
  EXPECT_THAT(damage(npy(header, "abcde")), HasSubstr("found 5 bytes of data, wanted 6"));
  EXPECT_THAT(damage(npy(header, "abcdefg")), HasSubstr("found 7 bytes of data, wanted 6"));
  EXPECT_THAT(damage(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "")),
              HasSubstr("2^63"));
  EXPECT_THAT(damage(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904,)}", "")),
              HasSubstr("int64"));
}

// Every changed or missing byte is an error, or changes nothing that is read.
void expect_damage_is_seen(const std::string& file, std::string_view content, bool has_checksums) {
  const ScratchFile scratch(file);
  const auto still_right = [&] {
    try {
      const TensorFileReader reader(scratch.path());
      reader.verify_checksums();
      return !has_checksums || read_all(reader) == content;
    } catch (const FormatError&) {
      return true;
    } catch (const UnsupportedFile&) {
      return true;
    }
  };
  for (std::size_t i = 0; i < file.size(); ++i) {
    scratch.write(file.substr(0, i));
    EXPECT_THROW(TensorFileReader(scratch.path()).verify_checksums(), FormatError) << i;
    for (const int flip : {0x01, 0xFF}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      scratch.write(changed);
      EXPECT_TRUE(still_right()) << i << " " << flip;
    }
  }
}

TEST(TensorFileReader, SeesDamageAtEveryByteOfAPt) {
  expect_damage_is_seen(written_pt(DType::kInt16, {2, 3}, {3, 1}, "abcdefABCDEF"), "abcdefABCDEF", true);
  const Tensor t{DType::kInt16, {3, 2}, {1, 3}, "abcdefABCDEF"};
  expect_damage_is_seen(torch_file(t, true), gathered(t), true);
}

TEST(TensorFileReader, SurvivesDamageAtEveryByteOfANpy) {
  expect_damage_is_seen(written_npy(DType::kInt16, {2, 3}, "abcdefABCDEF"), "abcdefABCDEF", false);
}

}  // namespace
}  // namespace msprobe
