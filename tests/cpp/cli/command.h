#pragma once
// Runs a command on streams that a test can read.

#include <sstream>
#include <string>

#include "cli/commands.h"

namespace msprobe::test {

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

template <class Request>
Ran run(int (*command)(const Request&, const Output&), const Request& request, bool terminal = false) {
  std::ostringstream out;
  std::ostringstream err;
  Ran ran;
  ran.status = command(request, {out, err, terminal, false});
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

}  // namespace msprobe::test
