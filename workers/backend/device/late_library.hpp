#pragma once

#include <atomic>
#include <mutex>
#include <string>

/// Shared libraries that are loaded when one of their functions is called for the first time. A
/// program that names large libraries at link time maps and relocates them at every start, also
/// for work that never calls them.
namespace quasi {

/// One shared library, found as the dynamic loader finds those of this program: LD_LIBRARY_PATH,
/// the RUNPATH of the program, the loader's cache. It stays loaded until the program ends.
class LateLibrary {
 public:
  /// @param title what messages call it, e.g. "cuBLAS"
  /// @param file its name for the loader, e.g. "libcublas.so.13"
  LateLibrary(std::string title, std::string file);
  /// Returns the address of a symbol. The first call loads the library.
  /// @throws BackendAbsent if the library cannot be loaded or lacks the symbol. The message names
  ///         both, the loader's reason and the remedy.
  void* symbol(const char* name);

 private:
  std::string title_;
  std::string file_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

template <typename Signature>
class LateFunction;

/// A C function of a LateLibrary. It is called like the function itself, and its address is looked
/// up once.
template <typename Result, typename... Arguments>
class LateFunction<Result(Arguments...)> {
 public:
  constexpr LateFunction(LateLibrary& (*library)(), const char* name)
      : library_(library), name_(name) {}
  /// @throws BackendAbsent as LateLibrary::symbol.
  Result operator()(Arguments... arguments) const {
    Function* function = function_.load(std::memory_order_acquire);
    if (!function) {
      function = reinterpret_cast<Function*>(library_().symbol(name_));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  using Function = Result(Arguments...);
  LateLibrary& (*library_)();
  const char* name_;
  mutable std::atomic<Function*> function_{nullptr};
};

}  // namespace quasi
