//go:build unix && cgo

package supervise

import "C" // space.c
