#include "client/input/job_file.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "client/failure.hpp"
#include "client/input/spec_mapping.hpp"
#include "proto/wire/validate.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

const pb::OneofDescriptor& work_oneof() {
  return *v1::JobSpec::descriptor()->FindOneofByName("work");
}

std::string kind_list() {
  std::string list;
  for (const std::string& kind : wire::offered_kinds()) list += (list.empty() ? "" : ", ") + kind;
  return list;
}

/// Selects the kind in the spec and returns its DeckWork.
v1::DeckWork& set_deck_kind(v1::JobSpec& spec, const std::string& kind) {
  const pb::FieldDescriptor* field = v1::JobSpec::descriptor()->FindFieldByName(kind);
  if (field == nullptr || field->real_containing_oneof() != &work_oneof() ||
      field->message_type() != v1::DeckWork::descriptor()) {
    const std::string nearest = nearest_name(kind, wire::offered_kinds());
    throw Failure(ExitStatus::kInvalidInput,
                  "no kind '" + kind + "' of job takes a deck" +
                      (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
                  "known kinds: " + kind_list());
  }
  return static_cast<v1::DeckWork&>(*spec.GetReflection()->MutableMessage(&spec, field));
}

fs::path beside(const fs::path& file, const fs::path& named) {
  if (named.is_absolute() || !file.has_parent_path()) return named;
  return file.parent_path() / named;
}

/// The name of a deck: "silicon" for decks/silicon, decks/silicon/ and silicon.toml; the name of
/// the working directory for ".".
std::string deck_name(const fs::path& path) {
  fs::path name = path;
  if (!name.has_filename()) name = name.parent_path();
  if (name.filename() == "." || name.filename() == "..") {
    std::error_code ignored;
    name = fs::weakly_canonical(name, ignored);
  }
  std::string text = name.extension() == ".toml" ? name.stem().string() : name.filename().string();
  if (text.size() > 128) text.resize(128);
  return text;
}

/// Applies the [job] table of a TOML deck: the fields of JobSpec without work and inputs, and two
/// fields of DeckWork.
void apply_job_table(const SourceDocument& document, v1::JobSpec& spec, v1::DeckWork& work) {
  if (!document.value.contains("job")) return;
  const Json& table = document.value["job"];
  if (!table.is_object())
    throw Failure(ExitStatus::kInvalidInput, document.where("job") + ": must be a table, [job]",
                  "put name, priority, max_runtime and labels there");
  Json spec_fields = Json::object();
  Json work_fields = Json::object();
  for (const auto& [key, value] : table.items())
    (key == "device" || key == "exports" ? work_fields : spec_fields)[key] = value;

  std::vector<std::string> excluded{"inputs"};
  for (const std::string& kind : wire::all_kinds()) excluded.push_back(kind);
  v1::JobSpec settings;
  fill_message(document, spec_fields, "job", &settings, excluded);
  v1::DeckWork work_settings;
  fill_message(document, work_fields, "job", &work_settings, {"deck", "settings"});
  spec.MergeFrom(settings);
  work.MergeFrom(work_settings);
}

/// Collects the local files of a job spec: its deck, unless the inputs already hold it, and
/// [files].
void collect_files(const SourceDocument& document, const Json& files, const std::string& path,
                   JobRequest& request) {
  v1::DeckWork* work = wire::mutable_deck_of(request.spec);
  if (work != nullptr) {
    const std::string named = work->deck();
    if (named.empty())
      throw Failure(ExitStatus::kInvalidInput,
                    document.where(path) + (path.empty() ? ": " : ".") +
                        std::string(wire::kind_of(request.spec)) + ": 'deck' is missing",
                    "name the deck's directory or TOML file, relative to the job file");
    const bool among_inputs = std::any_of(
        request.spec.inputs().begin(), request.spec.inputs().end(), [&](const v1::Input& input) {
          return input.slot() == named || input.slot().starts_with(named + "/");
        });
    if (!among_inputs) {
      request.deck = beside(document.file, named);
      Deck deck = collect_deck(std::string(wire::kind_of(request.spec)), request.deck);
      work->set_deck(deck.slot);
      request.files = std::move(deck.inputs);
    }
  }
  for (const auto& [slot, named] : files.items()) {
    if (!named.is_string())
      throw Failure(ExitStatus::kInvalidInput,
                    document.where((path.empty() ? "files." : path + ".files.") + slot) +
                        ": must be the path of a file, in quotes",
                    "[files] holds lines like \"deck/FILE\" = \"../other/FILE\"");
    request.files.push_back(local_input(slot, beside(document.file, named.get<std::string>())));
  }
}

JobRequest job_from_spec(const SourceDocument& document, const Json& value,
                         const std::string& path) {
  JobRequest request{.source = document.file.string(), .spec = {}, .files = {}, .deck = {}};
  Json fields = value;
  Json files = Json::object();
  if (fields.is_object() && fields.contains("files")) {
    files = fields["files"];
    fields.erase("files");
    if (!files.is_object())
      throw Failure(ExitStatus::kInvalidInput, document.where("files") + ": must be a table",
                    "[files] holds lines like \"deck/FILE\" = \"../other/FILE\"");
  }
  fill_message(document, fields, path, &request.spec);
  if (request.spec.work_case() == v1::JobSpec::WORK_NOT_SET)
    throw Failure(
        ExitStatus::kInvalidInput, document.where(path) + ": no table of a kind is given",
        "give one table of: " + kind_list() + "; or, if this is a deck, 'kind = \"…\"' at its top");
  collect_files(document, files, path, request);
  if (request.spec.name().empty())
    request.spec.set_name(deck_name(request.deck.empty() ? document.file.stem() : request.deck));
  return request;
}

}  // namespace

JobRequest deck_settings(const std::string& kind, const fs::path& path) {
  JobRequest request{.source = path.string(), .spec = {}, .files = {}, .deck = path};
  v1::DeckWork& work = set_deck_kind(request.spec, kind);
  std::error_code ignored;
  if (path.extension() == ".toml" && !fs::is_directory(path, ignored)) {
    const SourceDocument document = read_document(path);
    if (document.value.contains("kind") && document.value["kind"] != kind)
      throw Failure(ExitStatus::kInvalidInput,
                    document.where("kind") + ": the deck says " + document.value["kind"].dump() +
                        ", the command line says '" + kind + "'",
                    "leave the kind out on the command line");
    apply_job_table(document, request.spec, work);
  }
  if (request.spec.name().empty()) request.spec.set_name(deck_name(path));
  return request;
}

JobRequest job_from_deck(const std::string& kind, const fs::path& path) {
  JobRequest request = deck_settings(kind, path);
  Deck deck = collect_deck(kind, path);
  wire::mutable_deck_of(request.spec)->set_deck(deck.slot);
  request.files = std::move(deck.inputs);
  return request;
}

std::string kind_of_toml(const fs::path& path) {
  if (path.extension() != ".toml") return "";
  const SourceDocument document = read_document(path);
  const auto kind = document.value.find("kind");
  return kind != document.value.end() && kind->is_string() ? kind->get<std::string>() : "";
}

std::vector<JobRequest> jobs_from_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw Failure(
        ExitStatus::kUsage,
        "'" + path.string() + "' is a directory, and the kind of its deck was not given",
        "give the kind before it: KIND " + path.string() + ", KIND one of: " + kind_list());
  const SourceDocument document = read_document(path);
  if (document.value.is_object() && document.value.contains("kind")) {
    const Json& kind = document.value["kind"];
    if (!kind.is_string())
      throw Failure(ExitStatus::kInvalidInput,
                    document.where("kind") + ": must be a text in quotes",
                    "known kinds: " + kind_list());
    if (path.extension() != ".toml")
      throw Failure(ExitStatus::kInvalidInput,
                    document.where("kind") + ": decks are TOML, job files have no 'kind'",
                    "in a job file the kind is the name of a table: {\"" + kind.get<std::string>() +
                        "\": {\"deck\": …}}");
    return {job_from_deck(kind.get<std::string>(), path)};
  }
  const bool wrapped = document.value.is_object() && document.value.contains("jobs");
  if (wrapped && document.value.size() != 1)
    throw Failure(ExitStatus::kInvalidInput,
                  document.where("jobs") + ": a file with 'jobs' may have no other key at its top",
                  "put every field into one of the [[jobs]]");
  const Json& list = wrapped ? document.value["jobs"] : document.value;
  if (!list.is_array()) return {job_from_spec(document, list, "")};
  std::vector<JobRequest> requests;
  for (const Json& value : list)
    requests.push_back(
        job_from_spec(document, value, "jobs[" + std::to_string(requests.size()) + "]"));
  if (requests.empty())
    throw Failure(ExitStatus::kInvalidInput, document.where("jobs") + ": the list is empty",
                  "write at least one job");
  return requests;
}

}  // namespace quasi::client
