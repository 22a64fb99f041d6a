// Submissions with one hostile field, sent to a real server. Each refusal names the field.

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

/// A request that is to be spoilt, one of its jobs, and random numbers.
struct Draw {
  v1::SubmitJobsRequest& request;
  v1::JobSpec& spec;
  std::int64_t number;
  std::mt19937_64& random;
};

/// A way to break one field, and a word that the refusal must contain.
struct Spoiling {
  const char* word;
  void (*apply)(Draw&);
};

constexpr Spoiling kSpoilings[] = {
    {"name", [](Draw& draw) { draw.spec.set_name(std::string(129 + draw.random() % 500, 'x')); }},
    {"name", [](Draw& draw) { draw.spec.set_name("bell\x07"); }},
    {"labels", [](Draw& draw) { (*draw.spec.mutable_labels())["Upper"] = "x"; }},
    {"labels", [](Draw& draw) { (*draw.spec.mutable_labels())["long"] = std::string(200, 'v'); }},
    {"deck", [](Draw& draw) { draw.spec.mutable_thermal()->set_deck("../etc"); }},
    {"deck", [](Draw& draw) { draw.spec.mutable_thermal()->set_deck("elsewhere"); }},
    {"settings[0].key",
     [](Draw& draw) { draw.spec.mutable_thermal()->mutable_settings(0)->set_key(""); }},
    {"exports[0]", [](Draw& draw) { draw.spec.mutable_thermal()->add_exports("a/b"); }},
    {"inputs[0].slot", [](Draw& draw) { draw.spec.mutable_inputs(0)->set_slot("/etc/passwd"); }},
    {"inputs[0].digest", [](Draw& draw) { draw.spec.mutable_inputs(0)->set_digest("xyz"); }},
    {"size_bytes",
     [](Draw& draw) { draw.spec.mutable_inputs(0)->set_size_bytes(~0ULL >> (draw.random() % 8)); }},
    {"inputs[1].slot", [](Draw& draw) { *draw.spec.add_inputs() = draw.spec.inputs(0); }},
    {"resources.gpus",
     [](Draw& draw) {
       draw.spec.mutable_resources()->set_gpus(17 + static_cast<std::uint32_t>(draw.random() % 99));
     }},
    {"resources.pool", [](Draw& draw) { draw.spec.mutable_resources()->set_pool("Not A Pool"); }},
    {"gpu_mem_bytes", [](Draw& draw) { draw.spec.mutable_resources()->set_gpu_mem_bytes(~0ULL); }},
    {"max_runtime",
     [](Draw& draw) {
       draw.spec.mutable_max_runtime()->set_seconds(-1 - std::abs(draw.number / 4));
     }},
    {"max_runtime", [](Draw& draw) { draw.spec.mutable_max_runtime()->set_nanos(-5); }},
    {"max_attempts", [](Draw& draw) { draw.spec.mutable_retry()->set_max_attempts(11); }},
    {"priority",
     [](Draw& draw) {
       draw.spec.set_priority(101 + static_cast<std::int32_t>(draw.random() % 1000));
     }},
    {"not_before",
     [](Draw& draw) {
       draw.spec.mutable_not_before()->set_seconds(std::numeric_limits<std::int64_t>::max());
     }},
    {"work", [](Draw& draw) { draw.spec.clear_work(); }},
    {"request_id", [](Draw& draw) { draw.request.set_request_id("not a uuid"); }},
};

/// Breaks one field of a sound request; returns a word that the refusal must contain.
std::string spoil(v1::SubmitJobsRequest& request, std::mt19937_64& random) {
  v1::JobSpec& spec = *request.mutable_jobs(static_cast<int>(random() % 2));
  const auto number = static_cast<std::int64_t>(random());
  Draw draw{request, spec, number, random};
  const Spoiling& spoiling = kSpoilings[random() % std::size(kSpoilings)];
  spoiling.apply(draw);
  return spoiling.word;
}

// Each of 1,000 requests is wrong in one field. None crashes the server, and each is refused as an
// invalid argument with the name of that field.
TEST_F(Calls, MalformedRequestsAreRefusedByField) {
  const char* given = std::getenv("QUASI_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20'261;
  std::cout << "QUASI_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1'000; ++i) {
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    *request.add_jobs() = valid_spec();
    *request.add_jobs() = valid_spec();
    const std::string field = spoil(request, random);
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsResponse response;
    const grpc::Status status = jobs_->SubmitJobs(&context, request, &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << i << " " << field << ": " << status.error_message();
    bool named = false;
    for (const auto& violation : wire::parse_details(status).fields)
      named = named || violation.field.find(field) != std::string::npos;
    ASSERT_TRUE(named) << i << ": " << field << " is not named in " << status.error_message();
  }
  submit();  // The server still takes jobs.
}

}  // namespace
}  // namespace quasi::server
