//go:build !unix

package machine

import "time"

// CPUTime is what the process has computed on all cores so far; it is not known here.
func CPUTime() time.Duration { return 0 }
