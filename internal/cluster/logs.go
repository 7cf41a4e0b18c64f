package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Log holds the last lines of the output of a task or a merge.
type Log struct {
	Task  int      `json:"task,omitempty"` // 0: the merge
	File  string   `json:"file"`
	Lines []string `json:"lines"`
}

// Logs reads the last lines, at most the given number, of the logs of the given tasks, and of
// merges if merge is set. A task without a log has a Log without lines. A task that the submission
// lacks is an error.
func Logs(run string, s *Submission, tasks []int, merge bool, lines int) ([]Log, error) {
	var out []Log
	dir := folder(run, s.Number, "logs")
	for _, n := range tasks {
		if _, err := s.task(n); err != nil {
			return nil, err
		}
		out = append(out, Log{Task: n, File: filepath.Join(dir, fmt.Sprintf("%d.log", n))})
	}
	if merge {
		files, err := fs.Glob(os.DirFS(dir), "merge*")
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			out = append(out, Log{File: filepath.Join(dir, name)})
		}
	}
	for i := range out {
		var err error
		if out[i].Lines, err = tail(out[i].File, lines); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
}

// tail returns at most the last n lines of a file, each made printable.
func tail(path string, n int) ([]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines, nil
}
