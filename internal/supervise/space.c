//go:build unix && cgo

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

// Below this limit the runtime of Go fails before main, or soon after. ONNX Runtime needs 1 GB more.
static const rlim_t needed = 2000000000;

// runs before Go's runtime starts.
__attribute__((constructor)) static void check_address_space(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed)
		return;
	dprintf(STDERR_FILENO, "noether: ulimit -v allows %.1f GB of address space, and noether needs 3 GB\n",
		limit.rlim_cur / 1e9);
	_exit(1);
}
