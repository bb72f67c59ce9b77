# Intel's Multi-Buffer Crypto for IPsec as IPSecMB::IPSecMB.
include(MusterFindLibrary)
muster_find_library(IPSecMB intel-ipsec-mb.h IPSec_MB)
