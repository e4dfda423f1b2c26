#include "format/unpickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/pickle.h"
#include "format/read_error.h"
#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::bytes;
using test::bytes_of;
using test::Sizes;
using testing::HasSubstr;

const std::string kPath = "x.pt";

PickledTensor read(const std::string& pickle) { return unpickle_tensor(bytes_of(pickle), kPath); }

template <class Expected>
std::string message_of(const std::string& pickle) {
  try {
    read(pickle);
  } catch (const Expected& error) {
    return error.what();
  }
  return "none";
}
const auto damage = message_of<FormatError>;
const auto kind = message_of<UnsupportedFile>;

// The opcodes of what torch.save writes; no memo but where it matters.
std::string text(const std::string& value) {
  return "X" + std::string(1, static_cast<char>(value.size())) + bytes("\0\0\0") + value;
}
std::string number(int value) { return "K" + std::string(1, static_cast<char>(value)); }
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string tuple(const std::string& items) { return "(" + items + "t"; }
std::string storage(const std::string& type, const std::string& device = "cpu", int numel = 12) {
  return tuple(text("storage") + global("torch", type) + text("3") + text(device) + number(numel)) + "Q";
}
const std::string kHooks = global("collections", "OrderedDict") + ")R";
const std::string kFalse = "\x89";
const std::string kTrue = "\x88";
const std::string kShape = tuple(number(2) + number(3));
const std::string kStrides = tuple(number(1) + number(4));
std::string v2(const std::string& more = {}, const std::string& requires_grad = kFalse) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(storage("FloatStorage") + number(1) + kShape + kStrides + requires_grad + kHooks + more) + "R";
}
std::string v3(const std::string& dtype, const std::string& more = {}) {
  return global("torch._utils", "_rebuild_tensor_v3") +
         tuple(storage("UntypedStorage") + number(1) + kShape + kStrides + kFalse + kHooks + global("torch", dtype) +
               more) +
         "R";
}
std::string protocol(int version) { return "\x80" + std::string(1, static_cast<char>(version)); }

TEST(Unpickle, ReadsWhatPickleTensorWrites) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const PickledTensor tensor = read(pickle_tensor(dtype, Sizes{2, 70000, 1}, Sizes{0, 1, 70000}, 70000));
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_EQ(tensor.shape, (Sizes{2, 70000, 1}));
    EXPECT_EQ(tensor.strides, (Sizes{0, 1, 70000}));
    EXPECT_EQ(tensor.offset, 0);
    EXPECT_EQ(tensor.storage.key, "0");
    EXPECT_EQ(tensor.storage.device, "cpu");
    EXPECT_EQ(tensor.storage.numel, tensor.storage.dtype ? 70000 : 70000 * dtype_info(dtype).item_bytes);
  }
}

TEST(Unpickle, ReadsIntegersOfEveryLength) {
  for (const std::int64_t size : {0LL, 255LL, 65535LL, 65536LL, 2147483648LL, 9223372036854775807LL}) {
    EXPECT_EQ(read(pickle_tensor(DType::kInt8, Sizes{size}, Sizes{1}, 1)).shape, Sizes{size});
  }
}

TEST(Unpickle, ReadsOffsetDeviceAndGradientFlag) {
  const PickledTensor tensor = read(protocol(2) + v2({}, kTrue) + ".");
  EXPECT_EQ(tensor.offset, 1);
  EXPECT_EQ(tensor.storage.key, "3");
  EXPECT_TRUE(tensor.requires_grad);
  EXPECT_FALSE(tensor.is_parameter);
  const std::string npu =
      global("torch._utils", "_rebuild_tensor") + tuple(storage("HalfStorage", "npu:0") + number(0) + ")" + ")") + "R.";
  EXPECT_EQ(read(npu).storage.device, "npu:0");
  EXPECT_EQ(read(npu).dtype, DType::kFloat16);
}

TEST(Unpickle, ReadsFlagsOfLazyViews) {
  const std::string conj = "}" + text("conj") + kTrue + "s";
  const std::string both = "}(" + text("conj") + kTrue + text("neg") + kTrue + text("other") + kTrue + "u";
  EXPECT_TRUE(read(v2(conj) + ".").is_conjugated);
  EXPECT_FALSE(read(v2(conj) + ".").is_negated);
  EXPECT_TRUE(read(v2(both) + ".").is_negated);
  EXPECT_TRUE(read(v3("complex32", both) + ".").is_negated);
  EXPECT_FALSE(read(v2("N") + ".").is_conjugated);
}

TEST(Unpickle, ReadsParametersAndPlainTensorsWithAttributes) {
  const std::string parameter =
      global("torch._utils", "_rebuild_parameter_with_state") + tuple(v2() + kTrue + kHooks + "}") + "R.";
  EXPECT_TRUE(read(parameter).is_parameter);
  EXPECT_TRUE(read(parameter).requires_grad);
  const auto from_type = [](const std::string& type) {
    return global("torch._tensor", "_rebuild_from_type_v2") +
           tuple(global("torch._utils", "_rebuild_tensor_v2") + type +
                 tuple(storage("FloatStorage") + number(1) + kShape + kStrides + kFalse + kHooks) + "}") +
           "R.";
  };
  EXPECT_EQ(read(from_type(global("torch", "Tensor"))).shape, (Sizes{2, 3}));
  EXPECT_THAT(kind(from_type(global("mine", "Tensor"))), HasSubstr("found a tensor subclass"));
}

TEST(Unpickle, ReadsEveryProtocol) {
  // What pickle.dumps(tensor, 4) has and protocol 2 has not: frames, short text, memoize, names from the stack.
  const auto short_text = [](const std::string& value) {
    return "\x8C" + std::string(1, static_cast<char>(value.size())) + value + "\x94";
  };
  const std::string frame = "\x95" + std::string(8, '\0');
  const std::string pickle = protocol(4) + frame + short_text("torch._utils") + short_text("_rebuild_tensor_v2") +
                             "\x93\x94((" + short_text("storage") + short_text("torch") + short_text("LongStorage") +
                             "\x93\x94" + short_text("0") + short_text("cuda:1") + number(8) + "t\x94QK" + bytes("\0") +
                             number(2) + "\x85\x94" + number(1) + "\x85\x94" + kFalse + short_text("collections") +
                             short_text("OrderedDict") + "\x93\x94)R\x94t\x94R\x94.";
  EXPECT_EQ(read(pickle).dtype, DType::kInt64);
  EXPECT_EQ(read(pickle).storage.device, "cuda:1");
}

TEST(Unpickle, NamesTheKindOfWhatIsNoDenseTensor) {
  EXPECT_THAT(kind("}."), HasSubstr("found a dict"));
  EXPECT_THAT(kind(kHooks + "."), HasSubstr("found a dict"));
  EXPECT_THAT(kind("](" + v2() + v2() + "e."), HasSubstr("found a list"));
  EXPECT_THAT(kind(number(3) + "."), HasSubstr("found an int"));
  EXPECT_THAT(kind("N."), HasSubstr("found None"));
  EXPECT_THAT(kind("G" + std::string(8, '\0') + "."), HasSubstr("found a float"));
  const auto call = [](const std::string& module, const std::string& name) {
    return global(module, name) + tuple(v2()) + "R.";
  };
  EXPECT_THAT(kind(call("torch._utils", "_rebuild_sparse_tensor")), HasSubstr("found a sparse tensor"));
  EXPECT_THAT(kind(call("torch._utils", "_rebuild_nested_tensor")), HasSubstr("found a nested tensor"));
  EXPECT_THAT(kind(call("os", "system")), HasSubstr("found an object of os.system"));
  EXPECT_THAT(kind(call("\x1B[31m", "x")), HasSubstr("?[31m.x"));
  const std::string quantized = global("torch._utils", "_rebuild_qtensor") + tuple(storage("QInt8Storage")) + "R";
  EXPECT_THAT(kind(quantized + "."), HasSubstr("found a quantized tensor"));
  EXPECT_THAT(kind(global("torch._utils", "_rebuild_parameter") + tuple(quantized + kFalse + kHooks) + "R."),
              HasSubstr("found a quantized tensor"));
  EXPECT_THAT(kind(v3("bits8") + "."), HasSubstr("torch.bits8"));
}

TEST(Unpickle, RefusesArgumentsThatMakeNoTensor) {
  const auto v2_with = [](const std::string& arguments) {
    return damage(global("torch._utils", "_rebuild_tensor_v2") + tuple(arguments) + "R.");
  };
  const std::string rest = kFalse + kHooks;
  EXPECT_THAT(v2_with(""), HasSubstr("with 0 arguments"));
  EXPECT_THAT(v2_with(number(1) + number(1) + kShape + kStrides + rest), HasSubstr("found an int"));
  EXPECT_THAT(v2_with(storage("FloatStorage") + "N" + kShape + kStrides + rest), HasSubstr("None for the offset"));
  EXPECT_THAT(v2_with(storage("FloatStorage") + number(1) + kShape + ")" + rest), HasSubstr("0 strides for 2"));
  EXPECT_THAT(v2_with(storage("FloatStorage") + number(1) + tuple("N") + tuple("N") + rest), HasSubstr("an int"));
  const std::string minus_one = "J\xFF\xFF\xFF\xFF";
  EXPECT_THAT(v2_with(storage("FloatStorage") + number(1) + tuple(minus_one) + tuple(number(1)) + rest),
              HasSubstr("a dimension of -1"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += number(1);
  EXPECT_THAT(v2_with(storage("FloatStorage") + number(1) + tuple(many) + tuple(many) + rest),
              HasSubstr("65 dimensions"));
  EXPECT_THAT(v2_with(storage("UntypedStorage") + number(1) + kShape + kStrides + rest), HasSubstr("untyped storage"));
  EXPECT_THAT(damage(number(1) + "Q."), HasSubstr("persistent"));
  EXPECT_THAT(damage(tuple(text("module") + text("a") + text("b")) + "Q."), HasSubstr("persistent"));
}

TEST(Unpickle, RefusesAMachineInAnImpossibleState) {
  for (const char* pickle : {"",
                             "\x80\x02",
                             ".",
                             "R.",
                             "t.",
                             "e.",
                             "(.",
                             "(0.",
                             "N(R.",
                             "NNR.",
                             "h\x05.",
                             "q\x01.",
                             "2.",
                             "s.",
                             "c",
                             "cmodule\nname",
                             "X\xFF\xFF\xFF\xFFx",
                             "\x85.",
                             "\x93.",
                             "NN\x93.",
                             "b.",
                             "\x80\x01.",
                             "\x80\x06.",
                             "iabc\n.",
                             "\x8B\xFF\xFF\xFF\xFF",
                             "1."}) {
    EXPECT_NE(damage(pickle), "none") << pickle;
    EXPECT_THAT(damage(pickle), HasSubstr("\"x.pt\"")) << pickle;
  }
}

TEST(Unpickle, NeedsNoStackForDeepNesting) {
  std::string deep = ")";
  for (int i = 0; i < 100000; ++i) deep += "\x85";
  EXPECT_THAT(kind(deep + "."), HasSubstr("found a tuple"));
  EXPECT_THAT(damage(std::string(100000, '(')), HasSubstr("ending"));
}

TEST(Unpickle, KeepsNoCopiesOfALongName) {
  // A name of 100,000 bytes, loaded from the memo once more for each of 1,000 storages.
  const std::string name = "X" + bytes("\xA0\x86\x01\x00") + std::string(100000, 'k') + "q" + bytes("\x01") + "0";
  std::string pickle = name;
  for (int i = 0; i < 1000; ++i) {
    pickle += tuple(text("storage") + global("torch", "FloatStorage") + "h\x01h\x01" + number(1)) + "Q";
  }
  EXPECT_THAT(damage(pickle + "."), HasSubstr("a name of 100000 bytes"));
}

TEST(Unpickle, SurvivesEveryChangedOrMissingByte) {
  for (const std::string& pickle : {v2("}" + text("conj") + kTrue + "s") + ".", protocol(4) + v3("uint16") + "."}) {
    for (std::size_t i = 0; i < pickle.size(); ++i) {
      EXPECT_THROW(read(pickle.substr(0, i)), FormatError) << i;
      for (int flip = 1; flip < 256; ++flip) {
        std::string changed = pickle;
        changed[i] = static_cast<char>(changed[i] ^ flip);
        try {
          EXPECT_LE(read(changed).shape.size(), 64U);
        } catch (const FormatError&) {
        } catch (const UnsupportedFile&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace msprobe
