package machine

import (
	"os"
	"path/filepath"
)

// Program returns the path of this program's file, without symbolic links where they can be
// followed; "" if it is unknown.
func Program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
