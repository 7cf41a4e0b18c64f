package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Log holds the last lines of the output of a task or a merge. A task is one call of noether run
// on the cluster, for some models or a part of the samples of one. The merge is the job after all
// tasks, which combines their results.
type Log struct {
	Task  int      `json:"task,omitempty"` // 0: the merge
	File  string   `json:"file"`
	Lines []string `json:"lines"`
}

// Logs reads the last lines, at most the given number, of the logs of a submission (a study divided
// into tasks): those of the given tasks (numbers from 1), and of merges if merge is set. run is the
// run folder, which holds the results of the study. For a task without a log it returns a Log
// without lines. A task that the submission lacks is an error.
func Logs(run string, s *Submission, tasks []int, merge bool, lines int) ([]Log, error) {
	var out []Log
	for _, n := range tasks {
		if _, err := s.task(n); err != nil {
			return nil, err
		}
		out = append(out, Log{Task: n, File: folder(run, s.Number, "logs", fmt.Sprintf("%d.log", n))})
	}
	if merge {
		dir := folder(run, s.Number, "logs")
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "merge") {
				out = append(out, Log{File: filepath.Join(dir, e.Name())})
			}
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

// tail returns at most the last n lines of a file, of its last MiB. Each line is trimmed of white
// space, cleared of control characters and cut to 300 characters.
func tail(path string, n int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-mebibyte)
	raw, err := io.ReadAll(io.NewSectionReader(f, start, mebibyte))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	if start > 0 && len(lines) > 1 {
		lines = lines[1:] // the first line is incomplete
	}
	lines = lines[max(0, len(lines)-n):]
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines, nil
}
