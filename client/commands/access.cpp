#include "client/commands/access.hpp"

#include <fcntl.h>
#include <google/protobuf/util/time_util.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/session/durable_file.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "client/views/table.hpp"
#include "proto/wire/access/login.hpp"

namespace quasi::client {
namespace {

using google::protobuf::util::TimeUtil;

std::string role_word(v1::Role role) { return enum_word(*v1::Role_descriptor(), role); }

Failure wrong_usage(const std::string& what) {
  return Failure(
      ExitStatus::kUsage, what,
      "write: quasi admin users | user NAME --role ROLE | code NAME | token NAME | revoke KEY | "
      "quota user NAME | quota tenant NAME | drain WORKER | cordon WORKER DEVICE | preempt JOB");
}

google::protobuf::Duration duration_of(const std::string& text, const std::string& flag) {
  const auto seconds = parse_duration_seconds(text);
  if (!seconds || *seconds <= 0.0)
    throw Failure(ExitStatus::kUsage, flag + ": '" + text + "' is not a time above zero",
                  "write it like 12h or 90d");
  return TimeUtil::SecondsToDuration(static_cast<std::int64_t>(*seconds));
}

v1::Role role_of(const std::string& word) {
  std::string name = "ROLE_";
  for (const char c : word) name.push_back(static_cast<char>(std::toupper(c)));
  v1::Role role = v1::ROLE_UNSPECIFIED;
  if (!v1::Role_Parse(name, &role) || role == v1::ROLE_UNSPECIFIED)
    throw wrong_usage("--role: no role '" + word +
                      "'; roles: viewer, user, operator, admin, worker");
  return role;
}

/// Appends the scopes of a list with commas, e.g. "read,submit".
template <class Request>
void add_scopes(const std::string& list, Request& request) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    std::string name = "TOKEN_SCOPE_";
    for (const char c : word) name.push_back(static_cast<char>(std::toupper(c)));
    v1::TokenScope scope = v1::TOKEN_SCOPE_UNSPECIFIED;
    if (!v1::TokenScope_Parse(name, &scope) || scope == v1::TOKEN_SCOPE_UNSPECIFIED)
      throw wrong_usage("--scope: no scope '" + word + "'; scopes: read, submit, cancel, admin");
    request.add_scopes(scope);
  }
}

Json scopes_json(const google::protobuf::RepeatedField<int>& scopes) {
  Json words = Json::array();
  for (const int scope : scopes) words.push_back(enum_word(*v1::TokenScope_descriptor(), scope));
  return words;
}

/// Returns the scopes of a narrowed token, e.g. "read,submit"; "" for a token with every scope.
std::string scopes_text(const google::protobuf::RepeatedField<int>& scopes) {
  constexpr int kEvery = v1::TokenScope_MAX;
  if (scopes.size() == kEvery) return {};
  std::string text;
  for (const int scope : scopes)
    text += (text.empty() ? "" : ",") + enum_word(*v1::TokenScope_descriptor(), scope);
  return text;
}

v1::ListPrincipalsResponse principals(Session& session) {
  return session.server.call(&Admin::ListPrincipals, v1::ListPrincipalsRequest());
}

Json principal_json(const v1::Principal& principal) {
  Json tokens = Json::array();
  for (const v1::TokenInfo& token : principal.tokens())
    tokens.push_back({{"key", token.key_id()},
                      {"expires", TimeUtil::ToString(token.expires())},
                      {"revoked", token.revoked()},
                      {"scopes", scopes_json(token.scopes())}});
  return Json{{"name", principal.name()},
              {"role", role_word(principal.role())},
              {"tenant", principal.tenant()},
              {"uid", principal.has_uid() ? Json(principal.uid()) : Json()},
              {"disabled", principal.disabled()},
              {"pool", principal.pool().empty() ? Json() : Json(principal.pool())},
              {"tokens", tokens}};
}

ExitStatus list_principals(Session& session) {
  const v1::ListPrincipalsResponse answer = principals(session);
  if (session.console.json()) {
    Json list = Json::array();
    for (const v1::Principal& principal : answer.principals())
      list.push_back(principal_json(principal));
    session.console.document({{"principals", list}});
    return ExitStatus::kOk;
  }
  Table table({{"NAME"}, {"ROLE"}, {"TENANT"}, {"UID", Table::Align::kRight}, {"TOKENS"}});
  for (const v1::Principal& principal : answer.principals()) {
    std::string keys;
    for (const v1::TokenInfo& token : principal.tokens())
      if (!token.revoked()) {
        const std::string scopes = scopes_text(token.scopes());
        keys += (keys.empty() ? "" : " ") + printable(token.key_id()) +
                (scopes.empty() ? "" : "(" + scopes + ")");
      }
    table.add({printable(principal.name()) + (principal.disabled() ? " (disabled)" : ""),
               role_word(principal.role()) +
                   (principal.pool().empty() ? "" : " in " + printable(principal.pool())),
               printable(principal.tenant()),
               principal.has_uid() ? std::to_string(principal.uid()) : "", keys});
  }
  session.console.data(table.text());
  return ExitStatus::kOk;
}

/// Changes the named fields of a principal, or creates it.
ExitStatus save_principal(Session& session, const AdminOptions& options) {
  v1::SavePrincipalRequest request;
  v1::Principal& wanted = *request.mutable_principal();
  bool is_known = false;
  const v1::ListPrincipalsResponse known = principals(session);
  for (const v1::Principal& principal : known.principals())
    if (principal.name() == options.words[1]) {
      wanted = principal;
      is_known = true;
    }
  wanted.clear_tokens();
  wanted.clear_created();
  wanted.set_name(options.words[1]);
  if (!is_known && options.role.empty())
    throw wrong_usage("there is no principal '" + options.words[1] + "'; a new one needs --role");
  if (!options.role.empty()) wanted.set_role(role_of(options.role));
  if (!options.tenant.empty()) wanted.set_tenant(options.tenant);
  if (wanted.tenant().empty()) wanted.set_tenant("default");
  if (options.uid) wanted.set_uid(*options.uid);
  // A pool belongs to a worker; somebody who is no worker any more leaves it.
  if (wanted.role() != v1::ROLE_WORKER) wanted.clear_pool();
  if (options.pool) wanted.set_pool(*options.pool);
  if (options.disable && options.enable)
    throw wrong_usage("--disable and --enable exclude each other");
  if (options.disable || options.enable) wanted.set_disabled(options.disable);
  const v1::Principal saved = session.server.call(&Admin::SavePrincipal, request).principal();
  if (session.console.json())
    session.console.document({{"principal", principal_json(saved)}});
  else
    session.console.data(printable(saved.name()) + "  " + role_word(saved.role()) + "  " +
                         printable(saved.tenant()) +
                         (saved.pool().empty() ? "" : "  pool " + printable(saved.pool())) +
                         (saved.disabled() ? "  disabled" : "") + "\n");
  return ExitStatus::kOk;
}

/// Writes a new file that its owner alone can read. An existing file is not replaced.
void write_secret(const std::string& path, const std::string& text) {
  try {
    write_new(path, text);
  } catch (const Failure& failure) {
    throw Failure(ExitStatus::kLocalFile, failure.what(),
                  "name a new file by --output; the token that was made is lost, end it with: "
                  "quasi admin revoke KEY");
  }
}

ExitStatus create_token(Session& session, const AdminOptions& options) {
  if (!options.output.empty() && ::access(options.output.c_str(), F_OK) == 0)
    throw Failure(ExitStatus::kLocalFile, options.output + " exists", "name a new file");
  v1::CreateTokenRequest request;
  request.set_principal(options.words[1]);
  if (!options.lifetime.empty())
    *request.mutable_lifetime() = duration_of(options.lifetime, "--lifetime");
  add_scopes(options.scopes, request);
  const v1::CreateTokenResponse answer = session.server.call(&Admin::CreateToken, request);
  const std::string expires = TimeUtil::ToString(answer.info().expires());
  if (!options.output.empty()) write_secret(options.output, answer.token() + "\n");
  if (session.console.json()) {
    Json body{{"principal", options.words[1]},
              {"key", answer.info().key_id()},
              {"expires", expires},
              {"scopes", scopes_json(answer.info().scopes())}};
    if (options.output.empty()) body["token"] = answer.token();
    session.console.document(body);
    return ExitStatus::kOk;
  }
  if (options.output.empty()) session.console.data(printable(answer.token()) + "\n");
  session.console.note("token " + printable(answer.info().key_id()) + " of " + options.words[1] +
                       ", valid until " + expires + "; it is not shown again");
  return ExitStatus::kOk;
}

/// Makes a one-time code for a principal and prints the line that its receiver types.
ExitStatus create_code(Session& session, const AdminOptions& options) {
  v1::CreateCodeRequest request;
  request.set_principal(options.words[1]);
  if (!options.lifetime.empty())
    *request.mutable_lifetime() = duration_of(options.lifetime, "--lifetime");
  add_scopes(options.scopes, request);
  const v1::CreateCodeResponse answer = session.server.call(&Codes::CreateCode, request);
  const std::string expires = TimeUtil::ToString(answer.expires());
  if (session.console.json()) {
    session.console.document(
        {{"principal", options.words[1]}, {"code", answer.code()}, {"expires", expires}});
    return ExitStatus::kOk;
  }
  session.console.data(printable(answer.code()) + "\n");
  session.console.note("for one use until " + expires +
                       ": quasi login CODE, or quasi-worker join CODE for a worker");
  return ExitStatus::kOk;
}

ExitStatus revoke_token(Session& session, const AdminOptions& options) {
  v1::RevokeTokenRequest request;
  request.set_key_id(options.words[1]);
  if (!options.delay.empty()) *request.mutable_delay() = duration_of(options.delay, "--delay");
  session.server.call(&Admin::RevokeToken, request);
  if (session.console.json())
    session.console.document({{"revoked", options.words[1]}});
  else
    session.console.note("token " + options.words[1] + " ends " +
                         (options.delay.empty() ? "now" : "in " + options.delay));
  return ExitStatus::kOk;
}

namespace fs = std::filesystem;
constexpr std::size_t kFileLimitBytes = 1 << 20;

/// A name for the context of a server: the first label of its host.
std::string context_name(const std::string& address) {
  std::string name;
  for (const char c : address.substr(0, address.rfind(':'))) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (c == '.' && name.find_first_not_of("0123456789-") != std::string::npos) break;
    name.push_back(is_plain ? c : '-');
  }
  return name;
}

/// Text of the client's configuration; "" if there is none yet.
std::string known_text(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) ? read_whole(file, kFileLimitBytes) : std::string();
}

/// The configuration with one more context, which is in use if none was.
std::string with_context(const fs::path& file, const std::string& name, const wire::Login& login,
                         const fs::path& token_file, const fs::path& ca_file) {
  std::string text = known_text(file);
  const toml::table table = toml::parse(text);
  const toml::node_view<const toml::node> contexts = table["context"];
  if (contexts[name])
    throw Failure(ExitStatus::kConflict, "there is a context '" + name + "' in " + file.string(),
                  "choose another name: quasi login --name NAME; or remove it there first");
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  if (!contexts) text += "[context]\nuse = \"" + name + "\"\n";
  return text + "\n[context." + name + "]\naddress = \"" + login.address + "\"\nca = \"" +
         ca_file.string() + "\"\ntoken_file = \"" + token_file.string() + "\"\n";
}

}  // namespace

ExitStatus whoami(Session& session) {
  const v1::GetCapabilitiesResponse answer =
      session.server.call(&Jobs::GetCapabilities, v1::GetCapabilitiesRequest());
  if (session.console.json()) {
    session.console.document({{"name", answer.principal()},
                              {"role", role_word(answer.role())},
                              {"tenant", answer.tenant()},
                              {"scopes", scopes_json(answer.token_scopes())},
                              {"server", session.server.address()}});
    return ExitStatus::kOk;
  }
  const std::string scopes = scopes_text(answer.token_scopes());
  session.console.data(printable(answer.principal()) + "  " + role_word(answer.role()) + "  " +
                       printable(answer.tenant()) + "  at " + session.server.address() +
                       (scopes.empty() ? "" : "  for " + scopes) + "\n");
  return ExitStatus::kOk;
}

ExitStatus admin(Session& session, const AdminOptions& options) {
  const std::string& action = options.words.front();
  if (is_order(action)) return order(session, options.words, options.order);
  if (action == "users" && options.words.size() == 1) return list_principals(session);
  if (options.words.size() == 2) {
    if (action == "user") return save_principal(session, options);
    if (action == "code") return create_code(session, options);
    if (action == "token") return create_token(session, options);
    if (action == "revoke") return revoke_token(session, options);
  }
  if (action == "quota" && options.words.size() == 3 &&
      (options.words[1] == "user" || options.words[1] == "tenant")) {
    QuotaOptions wanted = options.quota;
    wanted.kind = options.words[1];
    wanted.name = options.words[2];
    return quota(session, wanted);
  }
  throw wrong_usage("no action '" + action + "' with " + std::to_string(options.words.size() - 1) +
                    " names");
}

ExitStatus login(Console& console, const Environment& environment, const LoginOptions& options) {
  const fs::path file = fs::absolute(own_config_file(environment));
  try {
    const wire::JoinCode code = wire::read_join_code(options.code);
    const std::string name = options.context.empty() ? context_name(code.address) : options.context;
    const fs::path token_file = file.parent_path() / (name + ".token");
    const fs::path ca_file = file.parent_path() / (name + ".ca.pem");
    make_directory(file.parent_path(), Access::kOwner);
    // A conflict shows before the code is used up.
    with_context(file, name, {}, token_file, ca_file);
    const wire::Login login = wire::redeem(code);
    write_durably(ca_file, login.ca_pem);
    write_durably(token_file, login.token + "\n");
    write_durably(file, with_context(file, name, login, token_file, ca_file));
    console.note("you are " + printable(login.principal) + " (" + login.role + ") at " +
                 login.address + (login.scopes.empty() ? "" : ", for " + login.scopes) +
                 "; the context is '" + name + "' in " + file.string());
    console.note("try it: quasi --context " + name + " whoami");
    return ExitStatus::kOk;
  } catch (const wire::LoginError& error) {
    throw Failure(ExitStatus::kNotAllowed, error.what(), error.remedy);
  } catch (const toml::parse_error& error) {
    throw Failure(ExitStatus::kInvalidInput,
                  file.string() + " is no TOML: " + std::string(error.description()),
                  "correct it, then run the same command again");
  }
}

ExitStatus renew_token(Session& session) {
  const std::string& file = session.config.token_file.value;
  if (file.empty())
    throw Failure(ExitStatus::kUsage, "the context in use names no token file",
                  "name the context by --context; on a Unix socket nothing is to be renewed");
  const v1::RenewTokenResponse answer =
      session.server.call(&Codes::RenewToken, v1::RenewTokenRequest());
  write_durably(file, answer.token() + "\n");
  session.console.note("the new token in " + file + " is valid until " +
                       TimeUtil::ToString(answer.expires()) + "; the old one ends in a day");
  return ExitStatus::kOk;
}

}  // namespace quasi::client
