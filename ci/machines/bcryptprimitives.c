// A library of Windows 10 that Rust draws its random numbers from, and that older Wines lack: by what they have.
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL ProcessPrng(PBYTE data, SIZE_T bytes) {
    return RtlGenRandom(data, bytes);
}
