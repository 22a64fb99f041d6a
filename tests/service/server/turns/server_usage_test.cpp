// Tests the calls that show the use of accounts and set their quotas: who sees what, and what the
// quotas do to calls over the network.

#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

class Usage : public Access {
 protected:
  Person person(const std::string& name, v1::Role role, const std::string& tenant) {
    return {wire::open_channel(tcp()), token_of(name, role, 3'600, tenant)};
  }
  static grpc::Status usage_of(const Person& person, bool all, v1::GetUsageResponse* response) {
    v1::GetUsageRequest request;
    request.set_all(all);
    return person.call(person.jobs(), &v1::JobService::Stub::GetUsage, request, response);
  }
  static grpc::Status save(const Person& person, const v1::SaveQuotasRequest& request) {
    const auto stub = v1::AdminService::NewStub(person.channel());
    v1::SaveQuotasResponse response;
    const grpc::Status status =
        person.call(*stub, &v1::AdminService::Stub::SaveQuotas, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.account().tenant(), "phonons");
    }
    return status;
  }
  static v1::SaveQuotasRequest quotas_of(const std::string& principal) {
    v1::SaveQuotasRequest request;
    request.set_principal(principal);
    return request;
  }

  Person ada_ = person("ada", v1::ROLE_USER, "phonons");
  Person bo_ = person("bo", v1::ROLE_USER, "phonons");
  Person otto_ = person("otto", v1::ROLE_OPERATOR, "staff");
  Person root_admin_ = person("root2", v1::ROLE_ADMIN, "staff");
};

// A user sees their own account and the sum of their tenant. Operators see all accounts.
TEST_F(Usage, ShowsOnesOwnAccountAndThatOfTheTenant) {
  ada_.submit();
  bo_.submit();
  bo_.send("twelve bytes");
  v1::GetUsageResponse own;
  ASSERT_TRUE(usage_of(ada_, false, &own).ok());
  ASSERT_EQ(own.accounts_size(), 2);
  EXPECT_EQ(own.accounts(0).principal(), "ada");
  EXPECT_EQ(own.accounts(0).jobs(), 1U);
  EXPECT_EQ(own.accounts(0).stored_bytes(), 0U);
  EXPECT_EQ(own.accounts(1).principal(), "");
  EXPECT_EQ(own.accounts(1).tenant(), "phonons");
  EXPECT_EQ(own.accounts(1).jobs(), 2U);
  EXPECT_EQ(own.accounts(1).stored_bytes(), 12U);
  v1::GetUsageResponse all;
  EXPECT_EQ(usage_of(ada_, true, &all).error_code(), StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(usage_of(otto_, true, &all).ok());
  std::set<std::string> names;
  for (const v1::AccountUsage& account : all.accounts())
    names.insert(account.principal().empty() ? "tenant " + account.tenant() : account.principal());
  for (const char* name : {"ada", "bo", "otto", "tenant phonons", "tenant staff"})
    EXPECT_EQ(names.count(name), 1U) << name;
}

// An admin sets the quotas of a user. Over them a submission and an upload are refused, and an
// absent value takes a quota back.
TEST_F(Usage, AnAdminSetsQuotasThatHold) {
  v1::SaveQuotasRequest request = quotas_of("ada");
  request.mutable_quotas()->set_jobs(1);
  request.mutable_quotas()->set_stored_bytes(10);
  EXPECT_EQ(save(otto_, request).error_code(), StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(save(root_admin_, request).ok());
  ada_.submit();
  grpc::Status refused = ada_.try_submit();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(wire::reason_of(refused), "QUOTA_QUEUED");
  refused = ada_.try_send("twelve bytes");
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(wire::reason_of(refused), "QUOTA_BYTES");
  EXPECT_TRUE(ada_.try_send("ten bytes.").ok());
  bo_.submit();
  v1::GetUsageResponse own;
  ASSERT_TRUE(usage_of(ada_, false, &own).ok());
  EXPECT_EQ(own.accounts(0).quotas().jobs(), 1U);
  EXPECT_EQ(own.accounts(0).stored_bytes(), 10U);
  ASSERT_TRUE(save(root_admin_, quotas_of("ada")).ok());
  EXPECT_TRUE(ada_.try_submit().ok());
  EXPECT_TRUE(ada_.try_send("twelve bytes").ok());
}

// Wrong values are refused by field, and an unknown principal by name.
TEST_F(Usage, WrongQuotasAreRefusedByField) {
  EXPECT_EQ(save(root_admin_, quotas_of("nobody")).error_code(), StatusCode::NOT_FOUND);
  v1::SaveQuotasRequest both = quotas_of("ada");
  both.set_tenant("phonons");
  EXPECT_EQ(save(root_admin_, both).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::SaveQuotasRequest shares = quotas_of("ada");
  shares.mutable_quotas()->set_shares(0);
  const grpc::Status status = save(root_admin_, shares);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(wire::parse_details(status).fields.at(0).field, "quotas.shares");
}

}  // namespace
}  // namespace quasi::server
