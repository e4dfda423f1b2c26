#include "messages.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// A str of any bytes; those that are no UTF-8 stand as \xNN.
nb::object readable(const std::string& text) {
  nb::object decoded =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (!decoded.is_valid()) throw nb::python_error();
  return decoded;
}

}  // namespace

void show_message(nb::handle on_message, bool is_warning, const std::string& text) {
  try {
    on_message(is_warning, readable(text));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    error.discard_as_unraisable("msprobe: a message could not be shown");
  }
}

void show_messages(nb::handle on_message, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    show_message(on_message, message.level == Message::Level::kWarning, message.text);
  }
}

nb::dict summary_dict(const Summary& summary) {
  nb::dict out;
  out["saves"] = summary.saves;
  out["gradients"] = summary.gradients;
  out["repeated_gradients"] = summary.repeated_gradients;
  out["failures"] = summary.failures;
  out["text"] = readable(summary.text());
  return out;
}

}  // namespace msprobe
