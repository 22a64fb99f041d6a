// Tests who may call what: tokens, users of this machine, roles, and the calls of each.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>

#include "proto/wire/identity.hpp"
#include "server/access/rules.hpp"
#include "tests/service/support/people/access_fixture.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

TEST(AccessRules, CoverEveryMethodOnce) {
  std::set<std::string> ruled;
  for (const Rule& rule : rules())
    EXPECT_TRUE(ruled.insert(std::string(rule.method)).second) << rule.method << " twice";
  std::set<std::string> methods;
  for (const pb::MethodDescriptor* method : all_methods())
    EXPECT_TRUE(methods.insert(method->name()).second) << method->name() << " in two services";
  EXPECT_EQ(ruled, methods) << "each method needs a rule in server/access/rules.cpp";
}

TEST(AccessRules, SayWhatEachRoleIsFor) {
  EXPECT_TRUE(may_call(Role::kViewer, "GetJob"));
  EXPECT_FALSE(may_call(Role::kViewer, "SubmitJobs"));
  EXPECT_TRUE(may_call(Role::kUser, "SubmitJobs"));
  for (const Role role : {Role::kViewer, Role::kUser, Role::kOperator}) {
    EXPECT_FALSE(may_call(role, "Register")) << "a user is no worker";
    EXPECT_FALSE(may_call(role, "CompleteAttempt"));
    EXPECT_FALSE(may_call(role, "CreateToken"));
  }
  EXPECT_TRUE(may_call(Role::kAdmin, "CreateToken"));
  EXPECT_TRUE(may_call(Role::kWorker, "Register"));
  for (const char* method : {"SubmitJobs", "CancelJobs", "GetJob", "ListJobs", "CreateToken"})
    EXPECT_FALSE(may_call(Role::kWorker, method)) << method;
  EXPECT_FALSE(may_call(Role::kAdmin, "NoSuchMethod"));
}

// Every method of the protos is refused without a token, with a wrong one, to each role that has no
// right to it, and to each token of an admin that lacks its scope. It is not refused for its role
// or its scope to the others.
TEST_F(Access, EveryCallPassesTheDoor) {
  const std::map<Role, std::string> tokens{{Role::kViewer, token_of("vera", v1::ROLE_VIEWER)},
                                           {Role::kUser, token_of("ursula", v1::ROLE_USER)},
                                           {Role::kOperator, token_of("otto", v1::ROLE_OPERATOR)},
                                           {Role::kAdmin, token_of("ada", v1::ROLE_ADMIN)},
                                           {Role::kWorker, token_of("willi", v1::ROLE_WORKER)}};
  std::map<TokenScope, std::string> narrowed;
  for (const TokenScope scope : TokenScopes::every().list())
    narrowed[scope] =
        token_of("ada", v1::ROLE_ADMIN, 3'600, "phonons", {static_cast<v1::TokenScope>(scope)});
  int calls = 0, narrowed_calls = 0;
  for (const pb::MethodDescriptor* method : all_methods()) {
    SCOPED_TRACE(method->full_name());
    if (needs_no_token(method->name())) {
      EXPECT_EQ(method->name(), "RedeemCode");
      EXPECT_EQ(call(*method, "").error_code(), StatusCode::INVALID_ARGUMENT);
      continue;
    }
    const grpc::Status without = call(*method, "");
    EXPECT_EQ(without.error_code(), StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(wire::reason_of(without), "TOKEN_MISSING");
    const grpc::Status wrong = call(*method, "qsi_AAAAAAAAAAAA_" + std::string(43, 'A'));
    EXPECT_EQ(wrong.error_code(), StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(wire::reason_of(wrong), "TOKEN_INVALID");
    for (const auto& [role, token] : tokens) {
      const grpc::Status status = call(*method, token);
      EXPECT_EQ(wire::reason_of(status) == "ROLE_REQUIRED", !may_call(role, method->name()))
          << word_of(role) << ": " << status.error_message();
      EXPECT_NE(status.error_code(), StatusCode::UNAUTHENTICATED) << word_of(role);
      ++calls;
    }
    for (const auto& [scope, token] : narrowed) {
      const grpc::Status status = call(*method, token);
      EXPECT_EQ(wire::reason_of(status) == "SCOPE_REQUIRED", !scopes_for(method->name()).has(scope))
          << word_of(scope) << ": " << status.error_message();
      ++narrowed_calls;
    }
  }
  EXPECT_EQ(narrowed_calls, static_cast<int>(4 * (all_methods().size() - 1)));
  EXPECT_EQ(calls, static_cast<int>(5 * (all_methods().size() - 1)));
}

TEST_F(Access, ATokenOpensUntilItIsRevokedOrItsOwnerDisabled) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  EXPECT_EQ(token.size(), 4u + 12 + 1 + 43);
  EXPECT_TRUE(capabilities(token).ok());
  std::string wrong = token;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  EXPECT_EQ(wire::reason_of(capabilities(wrong)), "TOKEN_INVALID");
  EXPECT_EQ(wire::reason_of(capabilities(token.substr(0, 20))), "TOKEN_INVALID");

  const std::string second = token_of("ada", v1::ROLE_USER);
  revoke(token);
  EXPECT_EQ(wire::reason_of(capabilities(token)), "TOKEN_INVALID");
  EXPECT_TRUE(capabilities(second).ok());

  grpc::ClientContext context;
  v1::SavePrincipalRequest request;
  request.mutable_principal()->set_name("ada");
  request.mutable_principal()->set_role(v1::ROLE_USER);
  request.mutable_principal()->set_tenant("phonons");
  request.mutable_principal()->set_disabled(true);
  v1::SavePrincipalResponse response;
  ASSERT_TRUE(
      v1::AdminService::NewStub(channel_)->SavePrincipal(&context, request, &response).ok());
  EXPECT_EQ(wire::reason_of(capabilities(second)), "TOKEN_INVALID");
}

TEST_F(Access, TokensOutliveTheServerAndEndWithTheirTime) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const std::string brief = token_of("bo", v1::ROLE_USER, 1);
  server_.reset();
  start();
  EXPECT_TRUE(capabilities(token).ok());
  EXPECT_TRUE(wait_for([&] { return wire::reason_of(capabilities(brief)) == "TOKEN_EXPIRED"; }));
  // The channel of the Unix socket still has the session token of before the restart.
  EXPECT_NE(submit(), "");
}

// Secrets are in no file of the server and in no line of its log (I18).
TEST_F(Access, SecretsAreKeptNowhere) {
  options_.log_level = "debug";
  testing::internal::CaptureStderr();
  const std::string token = token_of("ada", v1::ROLE_USER);
  EXPECT_TRUE(capabilities(token).ok());
  std::string wrong = token;
  wrong[5] = wrong[5] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(capabilities(wrong).ok());
  const std::string session = wire::token_source(options_.listen[0], "")->token();  // of this user
  ASSERT_TRUE(session.starts_with("qsu_"));
  server_.reset();
  std::string everything = testing::internal::GetCapturedStderr();
  EXPECT_NE(everything.find("login_failed"), std::string::npos) << "the log was not captured";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
    if (entry.is_regular_file()) {
      std::ifstream in(entry.path(), std::ios::binary);
      everything.append(std::istreambuf_iterator<char>(in), {});
    }
  EXPECT_NE(everything.find(token.substr(4, 12)), std::string::npos) << "the key id is public";
  EXPECT_EQ(everything.find(token.substr(17)), std::string::npos) << "the secret was kept";
  EXPECT_EQ(everything.find(session.substr(4)), std::string::npos) << "the session was kept";
}

/// Asks the identity socket as another user of this machine. Returns its answer.
std::string ask_as(uid_t uid, const std::string& path) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    // Only calls that are safe after a fork of a process with threads.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    char line[512];
    ssize_t size = 0;
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::setuid(uid) != 0 ||
        ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      ::_exit(1);
    while ((size = ::read(socket, line, sizeof line)) > 0)
      if (::write(pipe_ends[1], line, static_cast<std::size_t>(size)) != size) ::_exit(1);
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  std::string answer;
  char line[512];
  for (ssize_t size = 0; (size = ::read(pipe_ends[0], line, sizeof line)) > 0;)
    answer.append(line, static_cast<std::size_t>(size));
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return answer.substr(0, answer.find('\n'));
}

// The kernel names the user of a connection: the server's own user is its admin, the configured
// ones are workers, and any other becomes a user.
TEST_F(Access, TheUserOfASocketIsKnownByTheKernel) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can ask as another user";
  const std::string path = wire::identity_path(root_ + "/s");
  ::chmod(root_.c_str(), 0755);
  ::chmod(path.c_str(), 0666);
  EXPECT_EQ(ask_as(65'534, path), "") << "it stands for every user of another namespace";
  const std::string user = ask_as(54'321, path);
  ASSERT_TRUE(user.starts_with("qsu_")) << user;
  EXPECT_TRUE(capabilities(user).ok());
  EXPECT_NE(wire::reason_of(call(method_of("JobService", "SubmitJobs"), user)), "ROLE_REQUIRED");
  EXPECT_EQ(wire::reason_of(call(method_of("WorkerService", "Register"), user)), "ROLE_REQUIRED");

  server_.reset();
  options_.api.enrol_users = false;
  options_.api.worker_uids = {54'322};
  start();
  ::chmod(path.c_str(), 0666);
  EXPECT_EQ(ask_as(54'323, path), "") << "an unknown user where nobody is enrolled";
  EXPECT_TRUE(ask_as(54'321, path).starts_with("qsu_")) << "the user of before is known";
  const std::string worker = ask_as(54'322, path);
  EXPECT_EQ(wire::reason_of(call(method_of("JobService", "SubmitJobs"), worker)), "ROLE_REQUIRED");
  EXPECT_NE(wire::reason_of(call(method_of("WorkerService", "Register"), worker)), "ROLE_REQUIRED");
}

// A server without `require_tokens` goes on as before: whoever reaches it is its owner.
TEST_F(Calls, WithoutTokensEveryCallerIsTheOwner) {
  EXPECT_FALSE(std::filesystem::exists(wire::identity_path(root_ + "/s")));
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(jobs_->GetCapabilities(&context, {}, &response).ok());
  EXPECT_EQ(response.principal(), "local");
  EXPECT_EQ(response.role(), v1::ROLE_ADMIN);
  EXPECT_NE(submit(), "");
}

}  // namespace
}  // namespace quasi::server
