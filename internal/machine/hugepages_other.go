//go:build !linux

package machine

// PreferHugePages does nothing: other systems choose the pages themselves.
func PreferHugePages([]byte) {}
