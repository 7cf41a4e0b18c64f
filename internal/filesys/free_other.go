//go:build !linux

package filesys

// Free returns the number of bytes that this user can still write to the file system of a folder.
// ok is false where it is not known, as here.
func Free(string) (bytes int64, ok bool) { return 0, false }
