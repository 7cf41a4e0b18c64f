package supervise

import (
	"os"
	"strconv"
	"strings"
)

// memoryKills returns how many processes the kernel has killed for lack of memory, in the whole
// system and in control groups, or 0 if it does not tell.
func memoryKills() int {
	raw, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(count))
			return n
		}
	}
	return 0
}
