// The library of Windows 10 that Rust's random numbers come from, for older versions of Wine, which lack it.
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL ProcessPrng(PBYTE data, SIZE_T bytes) {
    return RtlGenRandom(data, bytes);
}
