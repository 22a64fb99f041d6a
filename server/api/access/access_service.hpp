#pragma once

#include "quasi/v1/access_service.grpc.pb.h"
#include "server/api/services.hpp"

namespace quasi::server {

/// Implements quasi.v1.AccessService: tokens for those who have a code, and new tokens for old
/// ones.
class AccessServiceApi : public v1::AccessService::CallbackService {
 public:
  explicit AccessServiceApi(Services& services) : services_(services) {}

  grpc::ServerUnaryReactor* RedeemCode(grpc::CallbackServerContext*, const v1::RedeemCodeRequest*,
                                       v1::RedeemCodeResponse*) override;
  grpc::ServerUnaryReactor* RenewToken(grpc::CallbackServerContext*, const v1::RenewTokenRequest*,
                                       v1::RenewTokenResponse*) override;
  grpc::ServerUnaryReactor* CreateCode(grpc::CallbackServerContext*, const v1::CreateCodeRequest*,
                                       v1::CreateCodeResponse*) override;

 private:
  Services& services_;
};

}  // namespace quasi::server
