// Tests tokens that are narrowed to scopes, and workers that are bound to a pool.

#include "server/access/rules.hpp"
#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

TEST(AccessRules, ScopesOpenTheMethodsOfTheirUse) {
  const auto words = [](const char* method) { return words_of(scopes_for(method)); };
  EXPECT_EQ(words("GetJob"), "read");
  EXPECT_EQ(words("ReadBlob"), "read");
  EXPECT_EQ(words("SubmitJobs"), "submit");
  EXPECT_EQ(words("WriteBlob"), "submit");
  EXPECT_EQ(words("CancelJobs"), "cancel");
  EXPECT_EQ(words("DeleteJobs"), "cancel");
  EXPECT_EQ(words("CreateToken"), "admin");
  EXPECT_EQ(words("Register"), "admin") << "a narrowed token of an admin is no worker";
  EXPECT_EQ(words("GetCapabilities"), "read,submit,cancel,admin");
  EXPECT_EQ(words("NoSuchMethod"), "");
}

// One id in 64 would begin so without care, so that this test sees it in 1,000 ids.
TEST(Tokens, KeyIdsAreNoFlagsOfACommandLine) {
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(make_token().key_id.starts_with('-'));
}

class Scopes : public Access {
 protected:
  static std::string scopes_seen_by(const Person& person) {
    v1::GetCapabilitiesResponse seen;
    EXPECT_TRUE(person
                    .call(person.jobs(), &v1::JobService::Stub::GetCapabilities,
                          v1::GetCapabilitiesRequest(), &seen)
                    .ok());
    TokenScopes scopes;
    for (const int scope : seen.token_scopes()) scopes.add(static_cast<TokenScope>(scope));
    return words_of(scopes);
  }
  grpc::Status register_in(const Person& worker, const std::string& pool) {
    v1::RegisterRequest hello;
    hello.set_worker_id("w_" + std::string(26, 'A'));
    hello.set_incarnation(wire::make_uuid());
    hello.set_version("0.1.0");
    hello.set_pool(pool);
    hello.add_kinds("test");
    v1::Device& device = *hello.add_devices();
    device.set_id("cpu0");
    device.set_backend(v1::DEVICE_BACKEND_CPU);
    device.set_slots(1);
    v1::RegisterResponse known;
    return worker.call(worker.workers(), &v1::WorkerService::Stub::Register, hello, &known);
  }
};

TEST_F(Scopes, ANarrowedTokenDoesWhatItIsFor) {
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  const Person sender(wire::open_channel(tcp()),
                      token_of("ada", v1::ROLE_USER, 3'600, "phonons", {v1::TOKEN_SCOPE_SUBMIT}));
  EXPECT_EQ(scopes_seen_by(ada), "read,submit,cancel,admin");
  EXPECT_EQ(scopes_seen_by(sender), "submit");
  const std::string id = sender.submit(v1::VISIBILITY_PRIVATE);
  const grpc::Status refused = sender.cancel(id);
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.error_message(),
            "the token of ada has the scopes submit, and CancelJobs needs the scope cancel; ask an "
            "admin of the server for a token with it: quasi admin token ada --scope cancel");
  EXPECT_TRUE(ada.cancel(id).ok()) << "the job belongs to the owner of both tokens";
}

// A token cannot widen itself: a renewed one has the scopes of the old one, also after a restart.
TEST_F(Scopes, ARenewedTokenHasTheSameScopes) {
  std::string token = token_of("ada", v1::ROLE_USER, 3'600, "phonons",
                               {v1::TOKEN_SCOPE_READ, v1::TOKEN_SCOPE_CANCEL});
  {
    const Person ada(wire::open_channel(tcp()), token);
    v1::RenewTokenResponse renewed;
    const auto service = v1::AccessService::NewStub(ada.channel());
    const grpc::Status status =
        ada.call(*service, &v1::AccessService::Stub::RenewToken, v1::RenewTokenRequest(), &renewed);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_NE(renewed.token(), token);
    token = renewed.token();
  }
  server_.reset();
  start();
  EXPECT_EQ(scopes_seen_by(Person(wire::open_channel(tcp()), token)), "read,cancel");
}

TEST_F(Scopes, AreKnownAndNeverOfAWorker) {
  ASSERT_TRUE(save("willi", v1::ROLE_WORKER).ok());
  v1::CreateTokenResponse response;
  const grpc::Status worker = make_token_for("willi", {v1::TOKEN_SCOPE_READ}, 60, &response);
  EXPECT_EQ(worker.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(worker.error_message().find("--pool POOL"), std::string::npos);
  const grpc::Status unknown =
      make_token_for("willi", {static_cast<v1::TokenScope>(9)}, 60, &response);
  EXPECT_EQ(unknown.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(unknown.error_message().find("scopes[0]: must be one of READ"), std::string::npos)
      << unknown.error_message();
}

// A narrowed token stays narrow if its owner becomes a worker.
TEST_F(Scopes, ANarrowedTokenIsNoWorker) {
  const std::string token =
      token_of("ada", v1::ROLE_USER, 3'600, "phonons", {v1::TOKEN_SCOPE_READ});
  ASSERT_TRUE(save("ada", v1::ROLE_WORKER).ok());
  const grpc::Status refused = register_in(Person(wire::open_channel(tcp()), token), "");
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(wire::reason_of(refused), "SCOPE_REQUIRED");
}

TEST_F(Scopes, AWorkerRegistersInItsPoolAlone) {
  const Person free(wire::open_channel(tcp()), token_of("willi", v1::ROLE_WORKER));
  EXPECT_TRUE(register_in(free, "").ok());
  EXPECT_TRUE(register_in(free, "large").ok());
  ASSERT_TRUE(save("willi", v1::ROLE_WORKER, "phonons", "large").ok());
  EXPECT_TRUE(register_in(free, "large").ok());
  for (const std::string pool : {"", "default", "small"}) {
    const grpc::Status refused = register_in(free, pool);
    EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED) << pool;
    EXPECT_EQ(wire::reason_of(refused), "POOL_REQUIRED");
    EXPECT_NE(refused.error_message().find("set pool = \"large\""), std::string::npos)
        << refused.error_message();
  }
  const grpc::Status user = save("ada", v1::ROLE_USER, "phonons", "large");
  EXPECT_EQ(user.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(user.error_message().find("principal.pool"), std::string::npos);
  EXPECT_EQ(save("willi", v1::ROLE_WORKER, "phonons", "No Pool").error_code(),
            StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace quasi::server
