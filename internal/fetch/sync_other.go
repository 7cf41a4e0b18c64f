//go:build !linux

package fetch

import (
	"io/fs"
	"os"
	"path/filepath"
)

func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs only files that are open for writing
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
