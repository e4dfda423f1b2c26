// The program `msprobe`, for machines without Python.

#include <string>
#include <vector>

#include "msprobe/command_line.h"

int main(int argc, char** argv) { return msprobe::run_command_line(std::vector<std::string>(argv + 1, argv + argc)); }
