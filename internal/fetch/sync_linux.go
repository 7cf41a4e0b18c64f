package fetch

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncTree writes all files of a folder to the disk. It syncs the whole file system that the folder
// is on, because a call for each of a million small files is slow.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
