#pragma once

#include "quasi/v1/admin_service.grpc.pb.h"
#include "server/api/services.hpp"

namespace quasi::server {

/// Implements quasi.v1.AdminService: principals, their tokens and quotas,
/// and orders of operators about workers and running jobs.
class AdminServiceApi : public v1::AdminService::CallbackService {
 public:
  explicit AdminServiceApi(Services& services) : services_(services) {}

  grpc::ServerUnaryReactor* SavePrincipal(grpc::CallbackServerContext*,
                                          const v1::SavePrincipalRequest*,
                                          v1::SavePrincipalResponse*) override;
  grpc::ServerUnaryReactor* ListPrincipals(grpc::CallbackServerContext*,
                                           const v1::ListPrincipalsRequest*,
                                           v1::ListPrincipalsResponse*) override;
  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext*, const v1::CreateTokenRequest*,
                                        v1::CreateTokenResponse*) override;
  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext*, const v1::RevokeTokenRequest*,
                                        v1::RevokeTokenResponse*) override;
  grpc::ServerUnaryReactor* SaveQuotas(grpc::CallbackServerContext*, const v1::SaveQuotasRequest*,
                                       v1::SaveQuotasResponse*) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext*, const v1::DrainWorkerRequest*,
                                        v1::DrainWorkerResponse*) override;
  grpc::ServerUnaryReactor* CordonDevice(grpc::CallbackServerContext*,
                                         const v1::CordonDeviceRequest*,
                                         v1::CordonDeviceResponse*) override;
  grpc::ServerUnaryReactor* PreemptJobs(grpc::CallbackServerContext*, const v1::PreemptJobsRequest*,
                                        v1::PreemptJobsResponse*) override;

 private:
  Services& services_;
};

}  // namespace quasi::server
