#include "proto/wire/access/login.hpp"

#include <google/protobuf/descriptor.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "proto/wire/access/tls.hpp"
#include "proto/wire/channel.hpp"
#include "proto/wire/status.hpp"
#include "quasi/v1/access_service.grpc.pb.h"

namespace quasi::wire {
namespace {

constexpr std::chrono::seconds kPatience{15};
constexpr char kNewCode[] = "ask the operator of the server for a new code: quasi admin code NAME";

/// The certificate among those of the server that has the fingerprint of the code.
std::string find_authority(const JoinCode& code) {
  const TlsView view = view_tls(code.address, "", kPatience);
  if (view.verdict == TlsVerdict::kNoAnswer)
    throw LoginError("no answer from a server at " + code.address,
                     "check that it runs and that no firewall is between; the code is not used up");
  for (const std::string& pem : view.chain_pem)
    if (certificate_fingerprint(pem) == code.fingerprint) return pem;
  throw LoginError("the server at " + code.address + " does not show the CA that the code names",
                   "nothing was sent, because it may be another server; compare the address with "
                   "its operator, and let tls_certificate end with the certificate of the CA");
}

/// The word for a value of an enumeration, e.g. "worker" for ROLE_WORKER.
std::string word_of(const std::string& name, const std::string& prefix) {
  std::string word = name.substr(std::min(prefix.size(), name.size()));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

}  // namespace

JoinCode read_join_code(const std::string& argument) {
  std::string line = argument;
  if (argument.empty() || argument == "-") {
    if (::isatty(STDIN_FILENO) != 0) std::cerr << "code: " << std::flush;
    line.clear();
    std::getline(std::cin, line);
  }
  const auto code = parse_join_code(line);
  if (!code || !is_server_address(code->address))
    throw LoginError("this is no whole code: it is one line that begins with qsc_",
                     "copy the whole line that quasi-server init or quasi admin code printed");
  return *code;
}

Login redeem(const JoinCode& code) {
  require_tls_1_3();
  Login login{.address = code.address, .ca_pem = find_authority(code)};
  grpc::SslCredentialsOptions trusted;
  trusted.pem_root_certs = login.ca_pem;
  const auto channel = grpc::CreateChannel(code.address, grpc::SslCredentials(trusted));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::RedeemCodeRequest request;
  request.set_secret(code.secret);
  v1::RedeemCodeResponse answer;
  const grpc::Status status =
      v1::AccessService::NewStub(channel)->RedeemCode(&context, request, &answer);
  if (!status.ok()) {
    if (!reason_of(status).empty()) throw LoginError(status.error_message(), kNewCode);
    const TlsView view = view_tls(code.address, login.ca_pem, kPatience);
    if (view.verdict != TlsVerdict::kAccepted && view.verdict != TlsVerdict::kNoAnswer)
      throw LoginError("the certificate of " + code.address + " is not acceptable: " + view.reason,
                       "compare the clocks of both machines (date -u) and the name in the address; "
                       "the code is not used up");
    throw LoginError(
        "no answer from a server at " + code.address + ": " + status.error_message(),
        "run the same command again; if the code is used up by now, " + std::string(kNewCode));
  }
  login.token = answer.token();
  login.principal = answer.principal();
  login.role = word_of(v1::Role_Name(answer.role()), "ROLE_");
  if (answer.scopes_size() < v1::TokenScope_MAX)
    for (const int scope : answer.scopes())
      login.scopes +=
          (login.scopes.empty() ? "" : ",") + word_of(v1::TokenScope_Name(scope), "TOKEN_SCOPE_");
  login.pool = answer.pool();
  return login;
}

}  // namespace quasi::wire
