package filesys

import "syscall"

// Free returns the number of bytes that this user can still write to the file system of a folder.
// ok is false where it is not known.
func Free(dir string) (bytes int64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}
