#include "workers/io/sha256.hpp"

#include <gtest/gtest.h>

namespace quasi {
namespace {

std::string digest(const std::string& text, std::size_t piece) {
  Sha256 hash;
  for (std::size_t at = 0; at < text.size(); at += piece) hash.update(text.substr(at, piece));
  return hash.hex();
}

// The examples of FIPS 180-4 and a million letters, for several ways of cutting the bytes.
TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 2), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  for (const std::size_t piece : {1000000u, 64u, 63u, 777u})
    EXPECT_EQ(digest(std::string(1000000, 'a'), piece),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace quasi
