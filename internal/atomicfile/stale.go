package atomicfile

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/filesys"
)

// StaleAfter is the time since the last change of a temporary file after which it is taken for one
// of a killed process and may be removed.
const StaleAfter = time.Hour

// IsTemporary reports whether a file name is one that this program gives to temporary files: to
// files that get their final name when they are complete, to those that Clock writes, and to those
// that os.CreateTemp makes with the pattern ".WORD-*.tmp".
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && temporary.MatchString(name)
}

var temporary = regexp.MustCompile(`^\..+\.[0-9a-f]{16}\.tmp$|^\.[a-z]+-[0-9]+\.tmp$|^\.writable-[0-9]+$`)

// Clock returns the time by the clock that sets the times of files in a folder, such as that of a
// file server, which may differ from the local clock by hours. It writes a file to the folder and
// removes it, and returns an error if it cannot.
func Clock(dir string) (time.Time, error) {
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return time.Time{}, err
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	if _, err := probe.Write([]byte{0}); err != nil {
		return time.Time{}, err
	}
	info, err := probe.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Stale returns the paths of the temporary files in a folder that are older than StaleAfter,
// sorted. now is the time that Clock returns. For a folder that cannot be read the list is empty.
func Stale(dir string, now time.Time) []string {
	entries, _ := filesys.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if e.IsDir() || !IsTemporary(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > StaleAfter {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(out)
	return out
}

// swept are the folders that sweepOnce has been called for. Paths are kept as given, since making
// those of 200,000 files absolute takes half a second.
var swept sync.Map

// sweepOnce removes the stale temporary files in the folder of a file that was just written, once
// per process and folder. The time of the new file stands for that of Clock. Errors are ignored.
func sweepOnce(path string) {
	dir := filepath.Dir(path)
	if _, done := swept.LoadOrStore(dir, true); done {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	for _, file := range Stale(dir, info.ModTime()) {
		filesys.Remove(file)
	}
}
