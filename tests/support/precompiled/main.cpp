// A program of nothing but its precompiled headers, which the tests use (tests/CMakeLists.txt).
int main() { return 0; }
