#include "format/unpickle.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "format/byte_parser.h"
#include "format/storage_class.h"

namespace msprobe {
namespace {

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kBytes,
  kGlobal,
  kTuple,
  kList,
  kDict,
  kSet,
  kStorage,
  kTensor,
  kObject,
};

// A value of the machine. Values refer to each other by number, so that nothing here recurses, whatever the pickle
// says.
using Id = std::uint32_t;
struct Value {
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  // kBool, kInteger; of kStorage and kTensor the place in their list
  std::string_view module;  // kGlobal, kObject (of the class or function that made it)
  std::string_view text;    // kText; the name of a kGlobal or kObject
  std::vector<Id> items;    // kTuple, kList; of a kDict keys and values in turn
};

struct Opaque {
  std::string_view function;
  std::string_view what;
};
constexpr std::array<Opaque, 8> kOpaque{{
    {"_rebuild_qtensor", "a quantized tensor"},
    {"_rebuild_sparse_tensor", "a sparse tensor"},
    {"_rebuild_sparse_csr_tensor", "a sparse tensor"},
    {"_rebuild_nested_tensor", "a nested tensor"},
    {"_rebuild_njt", "a nested tensor"},
    {"_rebuild_wrapper_subclass", "a tensor subclass"},
    {"_rebuild_from_type_v2", "a tensor subclass"},
    {"_rebuild_meta_tensor_no_storage", "a tensor of the device meta, which has no values"},
}};

std::string describe(const Value& value) {
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a bool";
    case Kind::kInteger:
      return "an int";
    case Kind::kFloat:
      return "a float";
    case Kind::kText:
      return "a str";
    case Kind::kBytes:
      return "bytes";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "a dict";
    case Kind::kSet:
      return "a set";
    case Kind::kStorage:
      return "a storage";
    case Kind::kTensor:
      return "a tensor";
    case Kind::kGlobal:
    case Kind::kObject:
      break;
  }
  const auto* known = std::ranges::find(kOpaque, value.text, &Opaque::function);
  if (value.kind == Kind::kObject && known != kOpaque.end()) return std::string(known->what);
  return (value.kind == Kind::kObject ? "an object of " : "") + std::string(value.module) + "." +
         std::string(value.text);
}

class Machine {
 public:
  Machine(std::span<const std::byte> pickle, const std::string& path) : path_(path), in_(pickle, path, "a pickle") {}

  // Runs to the STOP and returns the result.
  PickledTensor run();

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& wanted) const {
    throw FormatError(
        read_message(path_, found + " at byte " + std::to_string(in_.position()) + " of the pickle", wanted));
  }
  [[noreturn]] void refuse(const std::string& found) const {
    throw UnsupportedFile(read_message(path_, found, "one dense tensor (only the framework itself reads this file)"));
  }

  // Does what one opcode says; false: it was STOP.
  bool step();
  bool step_constant(std::uint8_t opcode);
  bool step_container(std::uint8_t opcode);
  bool step_memo(std::uint8_t opcode);

  Id add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<Id>(values_.size() - 1);
  }
  void push(Value value) { stack_.push_back(add(std::move(value))); }
  void push_number(Kind kind, std::int64_t number) { push({kind, number, {}, {}, {}}); }
  void push_text(Kind kind, std::string_view text) { push({kind, 0, {}, text, {}}); }
  void push_items(Kind kind, std::vector<Id> items) { push({kind, 0, {}, {}, std::move(items)}); }
  void push_global(std::string_view module, std::string_view name) { push({Kind::kGlobal, 0, module, name, {}}); }
  void push_long(std::span<const std::byte> bytes);

  [[nodiscard]] std::size_t frame_begin() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  void need(std::size_t count) const {
    if (stack_.size() - frame_begin() < count) fail("too few values on the stack", std::to_string(count));
  }
  Id pop() {
    need(1);
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  std::vector<Id> pop_items(std::size_t count) {
    need(count);
    std::vector<Id> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<Id> pop_to_mark() {
    if (marks_.empty()) fail("no mark on the stack", "one");
    std::vector<Id> items = pop_items(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  Value& top() {
    need(1);
    return values_[stack_.back()];
  }
  void append_to_top(const std::vector<Id>& items) {
    Value& value = top();
    value.items.insert(value.items.end(), items.begin(), items.end());
  }
  std::string_view line();

  void persistent_load();
  void call(Id function, Id arguments);
  [[nodiscard]] bool is_global(Id id, std::string_view module, std::string_view name) const {
    const Value& value = values_[id];
    return value.kind == Kind::kGlobal && value.module == module && value.text == name;
  }

  // The parts of a tensor. All throw FormatError if the value is not of that kind.
  [[nodiscard]] std::int64_t integer(Id id, std::string_view what) const;
  [[nodiscard]] std::vector<std::int64_t> integers(Id id, std::string_view what) const;
  [[nodiscard]] std::string_view short_text(Id id) const;
  // Makes the result of a function that rebuilds a tensor. Which arguments it has, its name says.
  [[nodiscard]] std::optional<PickledTensor> rebuild(const Value& function, const std::vector<Id>& arguments) const;
  void read_metadata(Id id, PickledTensor& tensor) const;

  const std::string& path_;
  ByteParser in_;
  std::deque<Value> values_;  // grows at its end only: references to values stay good
  std::vector<PickledStorage> storages_;
  std::vector<PickledTensor> tensors_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint32_t, Id> memo_;
};

PickledTensor Machine::run() {
  while (step()) {
  }
  const Value& result = values_[pop()];
  if (result.kind != Kind::kTensor) refuse(describe(result));
  return std::move(tensors_[static_cast<std::size_t>(result.number)]);
}

bool Machine::step() {
  const auto opcode = in_.number<std::uint8_t>();
  switch (opcode) {
    case '.':  // STOP
      return false;
    case 0x80: {  // PROTO
      const auto protocol = in_.number<std::uint8_t>();
      if (protocol < 2 || protocol > 5) fail("protocol " + std::to_string(protocol), "2 to 5");
      return true;
    }
    case 0x95:  // FRAME: where a buffer ends
      in_.take(8);
      return true;
    case 'c': {  // GLOBAL
      const std::string_view module = line();
      push_global(module, line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const std::vector<Id> names = pop_items(2);
      for (const Id id : names) {
        if (values_[id].kind != Kind::kText) fail(describe(values_[id]), "the name of a class or function");
      }
      push_global(values_[names[0]].text, values_[names[1]].text);
      return true;
    }
    case 'Q':  // BINPERSID
      persistent_load();
      return true;
    case 'R':     // REDUCE
    case 0x81: {  // NEWOBJ
      const std::vector<Id> pair = pop_items(2);
      call(pair[0], pair[1]);
      return true;
    }
    case 0x92: {  // NEWOBJ_EX: with keyword arguments, which no tensor has
      const std::vector<Id> triple = pop_items(3);
      push({Kind::kObject, 0, values_[triple[0]].module, values_[triple[0]].text, {}});
      return true;
    }
    case 'b':  // BUILD: gives the object a state
      pop();
      if (top().kind == Kind::kTensor) refuse("a tensor with a state of its own");
      return true;
    default:
      if (step_constant(opcode) || step_container(opcode) || step_memo(opcode)) return true;
      fail("opcode " + std::to_string(opcode), "one that torch.save writes");
  }
}

bool Machine::step_constant(std::uint8_t opcode) {
  switch (opcode) {
    case 'N':  // NONE
      push({});
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push_number(Kind::kBool, opcode == 0x88 ? 1 : 0);
      return true;
    case 'J':  // BININT
      push_number(Kind::kInteger, static_cast<std::int32_t>(in_.number<std::uint32_t>()));
      return true;
    case 'K':  // BININT1
      push_number(Kind::kInteger, in_.number<std::uint8_t>());
      return true;
    case 'M':  // BININT2
      push_number(Kind::kInteger, in_.number<std::uint16_t>());
      return true;
    case 0x8A:  // LONG1
      push_long(in_.take(in_.number<std::uint8_t>()));
      return true;
    case 0x8B:  // LONG4
      push_long(in_.take(in_.number<std::uint32_t>()));
      return true;
    case 'G':  // BINFLOAT
      in_.take(8);
      push_number(Kind::kFloat, 0);
      return true;
    case 'X':  // BINUNICODE
      push_text(Kind::kText, in_.text(in_.number<std::uint32_t>()));
      return true;
    case 'U':   // SHORT_BINSTRING: text of Python 2
    case 0x8C:  // SHORT_BINUNICODE
      push_text(Kind::kText, in_.text(in_.number<std::uint8_t>()));
      return true;
    case 'T':  // BINSTRING
      push_text(Kind::kText, in_.text(in_.number<std::uint32_t>()));
      return true;
    case 0x8D:  // BINUNICODE8
      push_text(Kind::kText, in_.text(in_.number<std::uint64_t>()));
      return true;
    case 'C':  // SHORT_BINBYTES
      push_text(Kind::kBytes, in_.text(in_.number<std::uint8_t>()));
      return true;
    case 'B':  // BINBYTES
      push_text(Kind::kBytes, in_.text(in_.number<std::uint32_t>()));
      return true;
    case 0x8E:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      push_text(Kind::kBytes, in_.text(in_.number<std::uint64_t>()));
      return true;
    default:
      return false;
  }
}

bool Machine::step_container(std::uint8_t opcode) {
  switch (opcode) {
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return true;
    case ')':  // EMPTY_TUPLE
      push_items(Kind::kTuple, {});
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      push_items(Kind::kTuple, pop_items(opcode - 0x84U));
      return true;
    case 't':  // TUPLE
      push_items(Kind::kTuple, pop_to_mark());
      return true;
    case ']':  // EMPTY_LIST
      push_items(Kind::kList, {});
      return true;
    case 'l':  // LIST
      push_items(Kind::kList, pop_to_mark());
      return true;
    case '}':  // EMPTY_DICT
      push_items(Kind::kDict, {});
      return true;
    case 'd':  // DICT
      push_items(Kind::kDict, pop_to_mark());
      return true;
    case 0x8F:  // EMPTY_SET
      push_items(Kind::kSet, {});
      return true;
    case 0x91:  // FROZENSET
      push_items(Kind::kSet, pop_to_mark());
      return true;
    case 'a':  // APPEND
      append_to_top(pop_items(1));
      return true;
    case 's':  // SETITEM
      append_to_top(pop_items(2));
      return true;
    case 'e':   // APPENDS
    case 'u':   // SETITEMS
    case 0x90:  // ADDITEMS
      append_to_top(pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool Machine::step_memo(std::uint8_t opcode) {
  const auto put = [&](std::uint32_t place) {
    need(1);
    memo_[place] = stack_.back();
  };
  const auto get = [&](std::uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("a memo " + std::to_string(place) + " that nothing was put in", "an earlier one");
    stack_.push_back(found->second);
  };
  switch (opcode) {
    case 'q':  // BINPUT
      put(in_.number<std::uint8_t>());
      return true;
    case 'r':  // LONG_BINPUT
      put(in_.number<std::uint32_t>());
      return true;
    case 0x94:  // MEMOIZE
      put(static_cast<std::uint32_t>(memo_.size()));
      return true;
    case 'h':  // BINGET
      get(in_.number<std::uint8_t>());
      return true;
    case 'j':  // LONG_BINGET
      get(in_.number<std::uint32_t>());
      return true;
    case '0':  // POP
      pop();
      return true;
    case '1':  // POP_MARK
      pop_to_mark();
      return true;
    case '2':  // DUP
      need(1);
      stack_.push_back(stack_.back());
      return true;
    default:
      return false;
  }
}

// Little-endian, in two's complement.
void Machine::push_long(std::span<const std::byte> bytes) {
  if (bytes.size() > sizeof(std::int64_t)) {
    push({Kind::kObject, 0, "builtins", "int", {}});
    return;
  }
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  std::array<std::byte, sizeof(std::int64_t)> all{};
  all.fill(negative ? std::byte{0xFF} : std::byte{0});
  std::ranges::copy(bytes, all.begin());
  push_number(Kind::kInteger, static_cast<std::int64_t>(load_little_endian<std::uint64_t>(all)));
}

std::string_view Machine::line() {
  const auto rest = in_.rest();
  const auto end = std::ranges::find(rest, std::byte{'\n'});
  if (end == rest.end()) fail("a name without an end", "a newline after it");
  const std::string_view text = in_.text(static_cast<std::uint64_t>(end - rest.begin()));
  in_.take(1);
  return text;
}

// ("storage", class, key, location, number of elements)
void Machine::persistent_load() {
  const Value& id = values_[pop()];
  const auto is_text = [&](std::size_t i) { return values_[id.items[i]].kind == Kind::kText; };
  const bool is_storage = id.kind == Kind::kTuple && id.items.size() >= 5 && is_text(0) &&
                          values_[id.items[0]].text == "storage" && values_[id.items[1]].kind == Kind::kGlobal &&
                          is_text(2) && is_text(3);
  if (!is_storage) fail("a persistent identifier that is no storage", "(\"storage\", class, key, device, size)");
  const std::string_view storage = values_[id.items[1]].text;
  PickledStorage result;
  result.key = short_text(id.items[2]);
  result.device = short_text(id.items[3]);
  result.numel = integer(id.items[4], "elements of a storage");
  if (result.numel < 0) fail("a storage of " + std::to_string(result.numel) + " elements", "none or more");
  if (storage != "UntypedStorage") {
    result.dtype = dtype_of_storage_class(storage);
    if (!result.dtype) {
      // A tensor on it cannot be described; what the file holds as a whole is more telling, so go on.
      push({Kind::kObject, 0, values_[id.items[1]].module, storage, {}});
      return;
    }
  }
  storages_.push_back(std::move(result));
  push_number(Kind::kStorage, static_cast<std::int64_t>(storages_.size() - 1));
}

void Machine::call(Id function, Id arguments) {
  const Value& called = values_[function];
  if (called.kind != Kind::kGlobal) fail("a call of " + describe(called), "a call of a class or function");
  if (values_[arguments].kind != Kind::kTuple) fail(describe(values_[arguments]), "a tuple of arguments");
  const std::vector<Id>& items = values_[arguments].items;
  if (called.module == "collections" && called.text == "OrderedDict") {
    push_items(Kind::kDict, {});
  } else if (called.module == "torch" && called.text == "Size" && items.size() == 1) {
    stack_.push_back(items[0]);
  } else if (std::optional<PickledTensor> tensor = rebuild(called, items)) {
    tensors_.push_back(*std::move(tensor));
    push_number(Kind::kTensor, static_cast<std::int64_t>(tensors_.size() - 1));
  } else {
    // Of a wrapper around something that is no dense tensor, that something is the name.
    const bool wraps = called.module == "torch._utils" && called.text.starts_with("_rebuild_parameter") &&
                       !items.empty() && values_[items[0]].kind == Kind::kObject;
    push(wraps ? values_[items[0]] : Value{Kind::kObject, 0, called.module, called.text, {}});
  }
}

std::int64_t Machine::integer(Id id, std::string_view what) const {
  const Value& value = values_[id];
  if (value.kind != Kind::kInteger) fail(describe(value) + " for the " + std::string(what), "an int");
  return value.number;
}

std::vector<std::int64_t> Machine::integers(Id id, std::string_view what) const {
  const Value& value = values_[id];
  if (value.kind != Kind::kTuple && value.kind != Kind::kList) {
    fail(describe(value) + " for the " + std::string(what), "a tuple of int");
  }
  constexpr std::size_t kMaxDimensions = 64;  // of PyTorch and NumPy
  if (value.items.size() > kMaxDimensions) {
    fail(std::to_string(value.items.size()) + " dimensions", std::to_string(kMaxDimensions) + " at most");
  }
  std::vector<std::int64_t> numbers;
  for (const Id item : value.items) numbers.push_back(integer(item, what));
  return numbers;
}

// Each storage has a copy of its own, and a pickle can load one text a hundred thousand times.
std::string_view Machine::short_text(Id id) const {
  constexpr std::size_t kLongest = 100;
  const std::string_view text = values_[id].text;
  if (text.size() > kLongest) fail("a name of " + std::to_string(text.size()) + " bytes", "100 at most");
  return text;
}

std::optional<PickledTensor> Machine::rebuild(const Value& function, const std::vector<Id>& arguments) const {
  const std::string_view name = function.text;
  const auto tensor_at = [&](std::size_t i) -> const PickledTensor* {
    if (i >= arguments.size() || values_[arguments[i]].kind != Kind::kTensor) return nullptr;
    return &tensors_[static_cast<std::size_t>(values_[arguments[i]].number)];
  };
  const auto need_arguments = [&](std::size_t least) {
    if (arguments.size() < least) {
      fail(std::string(name) + " with " + std::to_string(arguments.size()) + " arguments", std::to_string(least));
    }
  };
  const bool in_utils = function.module == "torch._utils";

  if (in_utils && (name == "_rebuild_parameter" || name == "_rebuild_parameter_with_state")) {
    const PickledTensor* data = tensor_at(0);
    if (data == nullptr) return std::nullopt;
    PickledTensor parameter = *data;
    parameter.is_parameter = true;
    parameter.requires_grad = arguments.size() > 1 && values_[arguments[1]].number != 0;
    return parameter;
  }
  if (function.module == "torch._tensor" && name == "_rebuild_from_type_v2") {
    // (function, class, arguments, state): a plain tensor with attributes, or a subclass.
    need_arguments(4);
    const bool plain = is_global(arguments[1], "torch", "Tensor") ||
                       is_global(arguments[1], "torch._tensor", "Tensor") ||
                       is_global(arguments[1], "torch.nn.parameter", "Parameter");
    const Value& inner = values_[arguments[0]];
    const bool nested = inner.text == name;  // would recurse, and no one writes it
    if (!plain || nested || inner.kind != Kind::kGlobal || values_[arguments[2]].kind != Kind::kTuple)
      return std::nullopt;
    return rebuild(inner, values_[arguments[2]].items);
  }

  if (in_utils && name == "_rebuild_device_tensor_from_cpu_tensor") {
    // (tensor, dtype, device, requires_grad), from devices without storages
    need_arguments(4);
    const PickledTensor* data = tensor_at(0);
    if (data == nullptr || !is_global(arguments[1], "torch", dtype_info(data->dtype).name)) return std::nullopt;
    return *data;
  }

  const bool v3 = in_utils && name == "_rebuild_tensor_v3";
  // Older torch_npu: the arguments of v2, and the layout on the device, which the file does not have.
  const bool npu = function.module == "torch_npu.utils.storage" && name == "_rebuild_npu_tensor";
  const bool v2 = in_utils && name == "_rebuild_tensor_v2";
  const bool v1 = in_utils && name == "_rebuild_tensor";
  if (!v1 && !v2 && !v3 && !npu) return std::nullopt;

  need_arguments(v1 ? 4 : v3 ? 7 : 6);
  const Value& storage = values_[arguments[0]];
  if (storage.kind == Kind::kObject) return std::nullopt;
  if (storage.kind != Kind::kStorage) fail(describe(storage), "a storage");
  PickledTensor tensor;
  tensor.storage = storages_[static_cast<std::size_t>(storage.number)];
  tensor.offset = integer(arguments[1], "offset in the storage");
  tensor.shape = integers(arguments[2], "shape");
  tensor.strides = integers(arguments[3], "strides");
  if (tensor.strides.size() != tensor.shape.size()) {
    fail(std::to_string(tensor.strides.size()) + " strides for " + std::to_string(tensor.shape.size()) + " dimensions",
         "as many");
  }
  for (const std::int64_t size : tensor.shape) {
    if (size < 0) fail("a dimension of " + std::to_string(size), "none negative");
  }
  if (!v1) tensor.requires_grad = values_[arguments[4]].number != 0;
  std::optional<DType> dtype = tensor.storage.dtype;
  if (v3) {
    const Value& named = values_[arguments[6]];
    if (named.kind != Kind::kGlobal || named.module != "torch") fail(describe(named), "a dtype");
    dtype = dtype_from_name(named.text);
    if (!dtype) refuse("a tensor of the dtype " + describe(named));
  }
  if (!dtype) fail("an untyped storage and no dtype", "either of them");
  tensor.dtype = *dtype;
  const std::size_t metadata = v3 ? 7 : 6;
  if (!v1 && !npu && arguments.size() > metadata) read_metadata(arguments[metadata], tensor);
  return tensor;
}

void Machine::read_metadata(Id id, PickledTensor& tensor) const {
  const Value& metadata = values_[id];
  if (metadata.kind != Kind::kDict && metadata.kind != Kind::kNone) fail(describe(metadata), "a dict of flags");
  for (std::size_t i = 0; i + 1 < metadata.items.size(); i += 2) {
    const Value& key = values_[metadata.items[i]];
    const bool is_set = values_[metadata.items[i + 1]].number != 0;
    if (key.kind != Kind::kText) continue;
    if (key.text == "conj") tensor.is_conjugated = is_set;
    if (key.text == "neg") tensor.is_negated = is_set;
  }
}

}  // namespace

PickledTensor unpickle_tensor(std::span<const std::byte> pickle, const std::string& path) {
  return Machine(pickle, path).run();
}

}  // namespace msprobe
