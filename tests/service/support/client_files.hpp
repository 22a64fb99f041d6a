#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "client/failure.hpp"
#include "client/input/config.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::client {

namespace fs = std::filesystem;

inline void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

inline Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

/// The failure of `body`. The test fails if there is none.
template <typename Body>
Failure failure_in(Body&& body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure;
  }
  ADD_FAILURE() << "did not fail";
  return {ExitStatus::kOk, ""};
}

#define EXPECT_SAYS(failure, part) \
  EXPECT_NE(std::string((failure).what()).find(part), std::string::npos) << (failure).what()

class ClientFiles : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_.path() / name; }
  fs::path file(const std::string& name, const std::string& text) const {
    write(path(name), text);
    return path(name);
  }

 private:
  test::TemporaryDirectory directory_;
};

}  // namespace quasi::client
