//go:build !linux

package machine

// PreferHugePages does nothing: systems other than Linux choose the size of memory pages
// themselves.
func PreferHugePages([]byte) {}
