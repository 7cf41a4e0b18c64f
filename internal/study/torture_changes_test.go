package study_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/scores"
)

// newPhotoStudy returns the study photosText (changed_test.go) of images and weights in files.
func newPhotoStudy(t *testing.T) *disturbedStudy {
	t.Helper()
	d := &disturbedStudy{dir: memoryDir(t), text: photosText, o: studytest.Options(t)}
	writePhotos(t, d.dir)
	d.want = d.run(t, filepath.Join(d.dir, "undisturbed"), d.o).Rows
	return d
}

// command returns a run of the study by the program.
func (d *disturbedStudy) command(t *testing.T, program, out string) (cmd *exec.Cmd, messages *bytes.Buffer) {
	cmd = exec.CommandContext(t.Context(), program, "run", filepath.Join(d.dir, "study.yaml"), "-o", out, "--save-every", "1ms", "--threads", "2")
	cmd.Env = append(os.Environ(), "NOETHER_BLAS=none")
	messages = new(bytes.Buffer)
	cmd.Stderr = messages
	return cmd, messages
}

// changesUnderRun returns a disturbance that changes the weights or a sample at a random moment of
// a run. Scores that the run stores under the hashes of the earlier content must be those of an
// undisturbed run. With the earlier content restored, another run must have all of them.
func (d *disturbedStudy) changesUnderRun(t *testing.T) func(t *testing.T, r *rand.Rand) {
	t.Helper()
	program := d.program(t)
	before, err := scores.ReadRecord(filepath.Join(d.dir, "undisturbed", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	typical := time.Second // duration of a run
	all := changes(t)
	return func(t *testing.T, r *rand.Rand) {
		out := filepath.Join(d.dir, "changed")
		defer os.RemoveAll(out)
		c := all[r.IntN(len(all))]
		start := time.Now()
		cmd, messages := d.command(t, program, out)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(typical))))
		if err := c.apply(d.dir); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err := cmd.Wait()
		typical = (typical + time.Since(start)) / 2
		time.Sleep(100 * time.Millisecond) // until what was moved away is back
		if strings.Contains(messages.String(), "goroutine ") {
			t.Fatalf("%s: %v: %s", c.name, err, messages)
		}
		d.checkStored(t, out, c.name, before)
		if c.undo != nil {
			if err := c.undo(d.dir); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(out); err == nil {
			result, err := study.Run(t.Context(), studytest.Parse(t, d.dir, d.text), out, d.o)
			if err != nil {
				t.Fatalf("%s, undone: %v", c.name, err)
			}
			studytest.SameScores(t, d.want, result.Rows, 0)
			for _, data := range result.Record.Data {
				if len(data.Unreadable) > 0 {
					t.Errorf("%s: %q are recorded as unreadable", c.name, data.Unreadable)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("%s: %s", c.name, messages)
		}
	}
}

// checkStored checks the scores in a folder against those of an undisturbed run, where the data and
// the model are recorded with the hashes that they have in that run's record.
func (d *disturbedStudy) checkStored(t *testing.T, out, what string, before scores.Record) {
	t.Helper()
	record, err := scores.ReadRecord(filepath.Join(out, "run.json"))
	if err != nil {
		return // nothing was stored
	}
	f, err := os.Open(filepath.Join(out, "scores.csv"))
	if err != nil {
		return
	}
	defer f.Close()
	rows, err := scores.ReadCSV(f)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	same := record.Data[0].Fingerprint == before.Data[0].Fingerprint
	for _, row := range rows {
		model := func(m scores.ModelRecord) bool { return m.Name == row.Model }
		i, k := slices.IndexFunc(record.Models, model), slices.IndexFunc(before.Models, model)
		if !same || record.Models[i].SHA256 != before.Models[k].SHA256 {
			continue // measured as it is now
		}
		if !slices.ContainsFunc(d.want, func(w scores.Row) bool {
			return w.Model == row.Model && w.Layer == row.Layer && w.Measure == row.Measure && w.Statistic == row.Statistic &&
				w.Variant == row.Variant && w.Transform == row.Transform && w.Parameter == row.Parameter && w.Value == row.Value
		}) {
			t.Errorf("%s: a score of other content is stored under the hash of the earlier one: %+v", what, row)
		}
	}
}

// passingErrors returns a disturbance that makes one system call on a sample or on the weights
// fail, or nil if strace does not work here. The run must succeed.
func (d *disturbedStudy) passingErrors(t *testing.T) func(t *testing.T, r *rand.Rand) {
	t.Helper()
	if err := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "true").Run(); err != nil {
		return nil
	}
	program := d.program(t)
	return func(t *testing.T, r *rand.Rand) {
		out := filepath.Join(d.dir, "passing")
		defer os.RemoveAll(out)
		call := []string{"openat", "read", "pread64"}[r.IntN(3)]
		cause := []string{"EIO", "EMFILE", "ENFILE", "ENOENT", "ESTALE", "EAGAIN"}[r.IntN(6)]
		path := photo(d.dir, r.IntN(16))
		inject := fmt.Sprintf("inject=%s:error=%s:when=%s", call, cause, strconv.Itoa(1+r.IntN(4)))
		cmd, messages := d.command(t, program, out)
		cmd.Args = append([]string{"strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", "trace=" + call, "-e", inject}, cmd.Args...)
		var err error
		if cmd.Path, err = exec.LookPath("strace"); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s of %s: %v: %s", inject, path, err, messages)
		}
		d.afterwards(t, out, inject, false)
	}
}
