package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/release"
)

// examineCommand says what a shell starts as noether. It warns if that is another program, and if
// Python imports another package as noether, since two distributions are imported so.
func examineCommand() component {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return component{What: "command", Install: err.Error()}
	}
	c := component{What: "command", Found: own}
	var warnings []string
	if onPath, err := exec.LookPath(release.Command); err == nil && !starts(onPath, own) {
		warnings = append(warnings, onPath+", which a shell starts as "+release.Command+", is another program: start this one as "+own+" or python -m "+release.Import)
	}
	if packages := filepath.Dir(filepath.Dir(filepath.Dir(own))); filepath.Base(filepath.Dir(filepath.Dir(own))) == release.Import {
		for _, name := range []string{release.Command, release.Command + ".py"} {
			if other := filepath.Join(packages, name); exists(other) {
				warnings = append(warnings, "Python imports "+other+" as "+release.Command+": import "+release.Import)
			}
		}
	}
	c.Warning = strings.Join(warnings, "; ")
	return c
}

// starts reports whether the program at a path is own, or the script with which Python's installers
// start this package. On Windows these are programs, which hold the script.
func starts(path, own string) bool {
	a, errA := os.Stat(path)
	b, errB := os.Stat(own)
	if errA != nil || errB != nil || os.SameFile(a, b) {
		return true // the same, or not known
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	const most = 1 << 20 // of a script, and of the programs that installers write
	content, err := io.ReadAll(io.LimitReader(f, most))
	return err != nil || bytes.Contains(content, []byte(release.Import))
}
