#include "format/record_reader.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "format/json_text.h"
#include "format/record.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

// The same JSON spaced as json.dumps does it, so that no writer's indentation makes a difference.
std::string on_one_line(std::string_view json) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char letter = json[i];
    if (!in_string && (letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n')) continue;
    out += letter;
    if (in_string && letter == '\\' && i + 1 < json.size()) {
      out += json[++i];
    } else if (letter == '"') {
      in_string = !in_string;
    } else if (!in_string && (letter == ',' || letter == ':')) {
      out += ' ';
    }
  }
  return out;
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> hex4(std::string_view text) {
  std::uint32_t unit = 0;
  if (text.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, unit, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return unit;
}

// Half a surrogate pair, which Python writes where a name was no UTF-8, is nothing that the parser takes: it becomes
// U+FFFD, which is as long as an escape.
void replace_lone_surrogates(std::string& text) {
  constexpr std::string_view kReplacement = "fffd";
  const auto unit_at = [&](std::size_t at) -> std::uint32_t {  // of an escape \uXXXX at `at`, else 0
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
    return hex4(std::string_view(text).substr(at + 2)).value_or(0);
  };
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at)) {
    const std::uint32_t unit = unit_at(at);
    if (unit >= 0xD800 && unit < 0xDC00 && (unit_at(at + 6) & 0xFC00U) == 0xDC00U) {
      at += 12;
    } else {
      if ((unit & 0xF800U) == 0xD800U) text.replace(at + 2, 4, kReplacement);
      at += 2;
    }
  }
}

// The members of a leaf; kOther are kept as they stand.
enum class Field : std::uint8_t {
  kDtype,
  kShape,
  kMax,
  kMin,
  kMean,
  kNorm,
  kMd5,
  kDataName,
  kRequiresGrad,
  kNanCount,
  kPosInfCount,
  kNegInfCount,
  kValue,
  kOther,
};

Field field_of(std::string_view name) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Field::kOther)> kNames = {
      "dtype",     "shape",         "Max",       "Min",           "Mean",          "Norm", "md5",
      "data_name", "requires_grad", "nan_count", "pos_inf_count", "neg_inf_count", "value"};
  return static_cast<Field>(std::ranges::find(kNames, name) - kNames.begin());
}

// What stands in the file, as the parser meets it. Frames are what is open, from the outermost.
class RecordBuilder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, RecordBuilder> {
 public:
  RecordBuilder(std::string_view text, const rapidjson::MemoryStream& stream) : text_(text), stream_(stream) {}

  // The events of the parser; false ends the parse.
  bool Null() { return scalar(Token::kNull, {}); }  // NOLINT(readability-identifier-naming)
  bool Bool(bool value) {
    return scalar(value ? Token::kTrue : Token::kFalse, {});
  }                                                                       // NOLINT(readability-identifier-naming)
  bool RawNumber(const char* digits, rapidjson::SizeType length, bool) {  // NOLINT(readability-identifier-naming)
    return scalar(Token::kNumber, {digits, length});
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {  // NOLINT(readability-identifier-naming)
    return scalar(Token::kString, {text, length});
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {  // NOLINT(readability-identifier-naming)
    Frame& top = frames_.back();
    if (top.kind == Frame::kSkip) return true;
    if (top.kind == Frame::kLeaf) {
      field_name_.assign(text, length);
      field_ = field_of(field_name_);
      value_begin_ = stream_.Tell();
    } else {
      key_.assign(text, length);
    }
    return true;
  }
  bool StartObject() { return open(false); }               // NOLINT(readability-identifier-naming)
  bool EndObject(rapidjson::SizeType) { return close(); }  // NOLINT(readability-identifier-naming)
  bool StartArray() { return open(true); }                 // NOLINT(readability-identifier-naming)
  bool EndArray(rapidjson::SizeType) { return close(); }   // NOLINT(readability-identifier-naming)

  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  RecordFile take() { return std::move(file_); }
  [[nodiscard]] bool has_data() const noexcept { return has_data_; }

 private:
  // The places of the leaves are longer than their text where a deep or long path has many of them.
  static constexpr std::size_t kLeastIndexBytes = std::size_t{1} << 20;
  static constexpr std::size_t kIndexBytesPerByte = 16;

  struct ByValue {
    using is_transparent = void;
    static const TensorForm& value(const TensorForm& form) { return form; }
    static const TensorForm& value(const std::shared_ptr<const TensorForm>& form) { return *form; }
    bool operator()(const auto& a, const auto& b) const { return value(a) < value(b); }
  };

  enum class Token : std::uint8_t { kNull, kTrue, kFalse, kNumber, kString };
  struct Frame {
    enum Kind : std::uint8_t { kRoot, kData, kNest, kLeaf, kShape, kSkip };
    Kind kind;
    bool is_list = false;
    std::int64_t members = 0;
    std::size_t index_bytes = 0;  // of index_, without the part that names the current member
  };

  // A value begins in a nesting: index_ names it from here on.
  void next_member(Frame& nest) {
    index_.resize(nest.index_bytes);
    if (!index_.empty()) index_ += '.';
    index_ += nest.is_list ? std::to_string(nest.members) : key_;
    ++nest.members;
  }

  bool open(bool is_list) {
    if (frames_.empty()) {
      if (is_list) return fail("an object", "a list");
      frames_.push_back({Frame::kRoot});
      return true;
    }
    Frame& top = frames_.back();
    switch (top.kind) {
      case Frame::kRoot:
        if (key_ == "data" && is_list) return fail("an object under \"data\"", "a list");
        has_data_ |= key_ == "data";
        frames_.push_back({key_ == "data" ? Frame::kData : Frame::kSkip});
        return true;
      case Frame::kData:
        begin_record();
        frames_.push_back({Frame::kNest, is_list});
        return true;
      case Frame::kNest:
        next_member(top);
        frames_.push_back({Frame::kNest, is_list, 0, index_.size()});
        return true;
      case Frame::kLeaf:
        frames_.push_back({is_list && field_ == Field::kShape ? Frame::kShape : Frame::kSkip});
        has_shape_ |= field_ == Field::kShape;
        return true;
      default:
        frames_.push_back({Frame::kSkip});
        return true;
    }
  }

  bool close() {
    const Frame closed = frames_.back();
    frames_.pop_back();
    if (closed.kind == Frame::kNest && closed.members == 0) {
      index_.resize(closed.index_bytes);
      add_leaf(closed.is_list ? RecordedScalar{"list", "[]"} : RecordedScalar{"dict", "{}"});
    } else if (closed.kind == Frame::kLeaf) {
      index_.resize(closed.index_bytes);
      finish_leaf();
    }
    if (frames_.empty()) return true;
    if (frames_.back().kind == Frame::kLeaf) keep_value(stream_.Tell() + 1);  // the bracket is not taken yet
    if (frames_.back().kind == Frame::kData) file_.records.push_back(std::exchange(record_, {}));
    return problem_.empty();
  }

  bool scalar(Token token, std::string_view text) {
    if (frames_.empty()) return fail("an object", "a plain value");
    Frame& top = frames_.back();
    switch (top.kind) {
      case Frame::kRoot:
        if (token == Token::kString) header(text);
        return true;
      case Frame::kData:
        begin_record();
        add_plain(token, text);
        file_.records.push_back(std::exchange(record_, {}));
        return true;
      case Frame::kNest:
        if (!top.is_list && top.members == 0 && token == Token::kString && key_ == "type") {
          top.kind = Frame::kLeaf;
          tensor_ = {};
          form_ = {};
          value_.clear();
          has_shape_ = false;
          form_.type = text;
          return true;
        }
        next_member(top);
        add_plain(token, text);
        return problem_.empty();
      case Frame::kLeaf:
        field(token, text);
        keep_value(stream_.Tell());
        return true;
      case Frame::kShape: {
        const auto size = parse_whole<std::int64_t>(text);
        if (token != Token::kNumber || !size) {
          form_.shape.emplace_back();
        } else {
          form_.shape.emplace_back(*size);
        }
        return true;
      }
      default:
        return true;
    }
  }

  void header(std::string_view text) {
    if (key_ == "task") file_.task = text;
    if (key_ == "level") file_.level = text;
    if (key_ == "framework") file_.framework = text;
  }

  void begin_record() {
    record_.key = key_;
    index_.clear();
    indexes_.clear();
  }

  void field(Token token, std::string_view text) {
    const Extremum number = token == Token::kNumber  ? parse_number(text)
                            : token == Token::kTrue  ? Extremum(true)
                            : token == Token::kFalse ? Extremum(false)
                                                     : Extremum();
    const auto* integer = std::get_if<std::int64_t>(&number);
    const bool is_string = token == Token::kString;
    switch (field_) {
      case Field::kMax:
        tensor_.max = number;
        break;
      case Field::kMin:
        tensor_.min = number;
        break;
      case Field::kMean:
        tensor_.mean = number;
        break;
      case Field::kNorm:
        tensor_.norm = number;
        break;
      case Field::kDtype:
        if (is_string) form_.dtype = text;
        break;
      case Field::kMd5:
        if (is_string) tensor_.md5 = text;
        break;
      case Field::kDataName:
        if (is_string) tensor_.data_name = text;
        break;
      case Field::kRequiresGrad:
        if (std::holds_alternative<bool>(number)) form_.requires_grad = std::get<bool>(number);
        break;
      case Field::kNanCount:
        if (integer != nullptr) tensor_.nan_count = *integer;
        break;
      case Field::kPosInfCount:
        if (integer != nullptr) tensor_.pos_inf_count = *integer;
        break;
      case Field::kNegInfCount:
        if (integer != nullptr) tensor_.neg_inf_count = *integer;
        break;
      default:
        break;
    }
  }

  // Keeps the text of the field that ends here, unless field() has taken it.
  void keep_value(std::size_t end) {
    if (field_ != Field::kValue && field_ != Field::kOther) return;
    std::string_view text = text_.substr(value_begin_, end - value_begin_);
    text.remove_prefix(std::min(text.find_first_not_of(": \t\r\n"), text.size()));
    if (field_ == Field::kValue) {
      value_ = on_one_line(text);
    } else {
      form_.extra.emplace_back(field_name_, on_one_line(text));
    }
  }

  void finish_leaf() {
    if (has_shape_) {
      auto form = forms_.find(form_);
      if (form == forms_.end()) form = forms_.insert(std::make_shared<const TensorForm>(std::move(form_))).first;
      tensor_.form = *form;
      add_leaf(std::move(tensor_));
    } else {
      add_leaf(RecordedScalar{std::move(form_.type), value_.empty() ? "null" : std::move(value_)});
    }
  }

  void add_plain(Token token, std::string_view text) {
    switch (token) {
      case Token::kNull:
        return add_leaf(std::monostate());
      case Token::kTrue:
        return add_leaf(RecordedScalar{"bool", "true"});
      case Token::kFalse:
        return add_leaf(RecordedScalar{"bool", "false"});
      case Token::kNumber:
        return add_leaf(RecordedScalar{"number", std::string(text)});
      case Token::kString: {
        std::string json;
        append_json_string(json, text);
        return add_leaf(RecordedScalar{"str", std::move(json)});
      }
    }
  }

  template <class Content>
  void add_leaf(Content content) {
    std::string index = index_;
    index_bytes_ += index.size();
    if (index_bytes_ > kLeastIndexBytes + kIndexBytesPerByte * text_.size()) {
      problem_ = "found a nesting whose places take far more room than the file";
      return;
    }
    // {"a.b": 1} and {"a": {"b": 1}}
    auto [same, is_new] = indexes_.try_emplace(index, 1);
    for (int& copies = same->second; !is_new; is_new = indexes_.try_emplace(index, 1).second) {
      index = index_ + "#" + std::to_string(++copies);
    }
    record_.leaves.push_back({std::move(index), std::move(content)});
  }

  bool fail(const std::string& wanted, const std::string& found) {
    problem_ = "expected " + wanted + ", found " + found;
    return false;
  }

  std::string_view text_;
  const rapidjson::MemoryStream& stream_;
  std::vector<Frame> frames_;
  std::string key_;         // of the member that comes next, outside a leaf
  std::string field_name_;  // likewise, in a leaf
  Field field_ = Field::kOther;
  std::string index_;
  std::unordered_map<std::string, int> indexes_;  // of the current record, and how many were to be it
  std::size_t index_bytes_ = 0;                   // of all records
  std::size_t value_begin_ = 0;
  RecordedTensor tensor_;  // the leaf that is open, and what else it could be
  TensorForm form_;
  std::set<std::shared_ptr<const TensorForm>, ByValue> forms_;
  std::string value_;
  bool has_shape_ = false;
  bool has_data_ = false;
  Record record_;
  RecordFile file_;
  std::string problem_;
};

}  // namespace

RecordFile parse_records(std::string text, const std::string& path) {
  const auto fail = [&](std::size_t offset, const std::string& what) {
    throw FormatError(path + ": not a debug.json: byte " + std::to_string(offset) + ": " + what);
  };
  if (text.find('\0') != std::string::npos) fail(text.find('\0'), "found a NUL byte");
  replace_lone_surrogates(text);
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                              rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  RecordBuilder builder(text, stream);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (!result) {
    fail(result.Offset(), result.Code() == rapidjson::kParseErrorTermination
                              ? builder.problem()
                              : rapidjson::GetParseError_En(result.Code()));
  }
  if (!builder.has_data()) fail(text.size(), "found no object \"data\"");
  RecordFile file = builder.take();
  std::string().swap(text);  // as large as the records
  name_records(file.records);
  return file;
}

void name_records(std::vector<Record>& records) {
  constexpr std::string_view kSuffix = ".debug";
  constexpr std::string_view kGradient = "_grad";
  for (Record& record : records) {
    record.name_bytes = record.key.size();
    record.count = 0;
    record.is_gradient = false;
    std::string_view rest = record.key;
    if (!rest.ends_with(kSuffix)) continue;
    rest.remove_suffix(kSuffix.size());
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos) continue;
    const auto count = parse_whole<std::int64_t>(rest.substr(dot + 1));
    if (!count || *count < 0) continue;
    record.name_bytes = dot;
    record.count = *count;
  }
  std::unordered_set<std::string_view> keys;  // filled with the first that may be a gradient
  for (Record& record : records) {
    std::string_view name = record.name();
    if (const std::size_t sign = name.rfind('#');
        sign != std::string_view::npos && parse_whole<int>(name.substr(sign + 1))) {
      name = name.substr(0, sign);
    }
    if (!name.ends_with(kGradient)) continue;
    name.remove_suffix(kGradient.size());
    if (keys.empty()) {
      for (const Record& other : records) keys.insert(other.key);
    }
    if (!keys.contains(std::string(name) + "." + std::to_string(record.count) + std::string(kSuffix))) continue;
    record.name_bytes = name.size();
    record.is_gradient = true;
  }
}

std::string leaf_name(const Record& record, const RecordedLeaf& leaf) {
  return leaf.index.empty() ? record.key : record.key + "." + leaf.index;
}

Extremum parse_number(std::string_view text) {
  if (text.find_first_of(".eEnNfI") == std::string_view::npos) {
    if (const auto number = parse_whole<std::int64_t>(text)) return *number;
    if (const auto number = parse_whole<std::uint64_t>(text)) return *number;
  }
  if (const auto number = parse_whole<double>(text)) return *number;
  return {};
}

std::optional<double> number_value(const Extremum& number) {
  if (const auto* flag = std::get_if<bool>(&number)) return *flag ? 1.0 : 0.0;
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return static_cast<double>(*integer);
  if (const auto* natural = std::get_if<std::uint64_t>(&number)) return static_cast<double>(*natural);
  if (const auto* real = std::get_if<double>(&number)) return *real;
  return std::nullopt;
}

bool same_number(const Extremum& a, const Extremum& b) {
  return std::visit(
      []<class A, class B>(const A& x, const B& y) {
        constexpr bool kEmptyA = std::is_same_v<A, std::monostate>;
        constexpr bool kEmptyB = std::is_same_v<B, std::monostate>;
        if constexpr (kEmptyA || kEmptyB) {
          return kEmptyA && kEmptyB;
        } else if constexpr (std::is_same_v<A, double> && std::is_same_v<B, double>) {
          return x == y || (std::isnan(x) && std::isnan(y));
        } else {  // holds every integer of 64 bits and every double
          return static_cast<long double>(x) == static_cast<long double>(y);
        }
      },
      a, b);
}

void append_leaf(std::string& out, const RecordedLeaf& leaf) {
  auto field = [&, first = true](std::string_view name, std::string_view json) mutable {
    out += first ? "{" : ", ";
    first = false;
    append_json_string(out, name);
    out += ": ";
    out += json;
  };
  const auto quoted = [](std::string_view text) {
    std::string json;
    append_json_string(json, text);
    return json;
  };
  if (std::holds_alternative<std::monostate>(leaf.content)) {
    out += "null";
    return;
  }
  if (const auto* scalar = std::get_if<RecordedScalar>(&leaf.content)) {
    field("type", quoted(scalar->type));
    field("value", scalar->value);
    out += '}';
    return;
  }
  const auto& tensor = std::get<RecordedTensor>(leaf.content);
  std::string shape = "[";
  for (const auto& size : tensor.form->shape) {
    if (shape.size() > 1) shape += ", ";
    shape += size ? std::to_string(*size) : "null";
  }
  field("type", quoted(tensor.form->type));
  field("dtype", quoted(tensor.form->dtype));
  field("shape", shape + "]");
  field("Max", number_text(tensor.max));
  field("Min", number_text(tensor.min));
  field("Mean", number_text(tensor.mean));
  field("Norm", number_text(tensor.norm));
  if (tensor.form->requires_grad) field("requires_grad", *tensor.form->requires_grad ? "true" : "false");
  for (const auto& [name, json] : tensor.form->extra) field(name, json);
  if (!tensor.md5.empty()) field("md5", quoted(tensor.md5));
  if (!tensor.data_name.empty()) field("data_name", quoted(tensor.data_name));
  if (tensor.nan_count > 0) field("nan_count", std::to_string(tensor.nan_count));
  if (tensor.pos_inf_count > 0) field("pos_inf_count", std::to_string(tensor.pos_inf_count));
  if (tensor.neg_inf_count > 0) field("neg_inf_count", std::to_string(tensor.neg_inf_count));
  out += '}';
}

}  // namespace msprobe
