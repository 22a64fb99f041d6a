#include "workers/backend/device/late_library.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

LateLibrary& mathematics() {
  static LateLibrary library("the mathematical library", "libm.so.6");
  return library;
}

LateLibrary& absent() {
  static LateLibrary library("cuBLAS", "libquasi_absent.so.13");
  return library;
}

/// Returns the message of the BackendAbsent that a call throws, or nothing.
std::string absence(const LateFunction<int()>& function) {
  try {
    function();
  } catch (const BackendAbsent& error) {
    return error.what();
  }
  return {};
}

TEST(LateLibrary, CallsAFunctionFromManyThreadsAtOnce) {
  static const LateFunction<double(double)> cosine{mathematics, "cos"};
  std::vector<double> values(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < values.size(); ++i)
      threads.emplace_back([&values, i] { values[i] = cosine(0.1 * static_cast<double>(i)); });
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], std::cos(0.1 * static_cast<double>(i)));
}

TEST(LateLibrary, SaysWhatIsMissingAndWhatToDo) {
  static const LateFunction<int()> of_no_library{absent, "cublasCreate_v2"};
  const std::string library = absence(of_no_library);
  for (const char* part : {"cuBLAS", "libquasi_absent.so.13", "No such file", "LD_LIBRARY_PATH"})
    EXPECT_NE(library.find(part), std::string::npos) << library;
  static const LateFunction<int()> of_no_name{mathematics, "quasi_no_such_function"};
  const std::string symbol = absence(of_no_name);
  for (const char* part : {"libm.so.6", "quasi_no_such_function", "version"})
    EXPECT_NE(symbol.find(part), std::string::npos) << symbol;
}

}  // namespace
}  // namespace quasi
