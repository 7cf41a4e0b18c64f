package study_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/powerloss"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
)

var (
	tortureTime  = flag.Duration("torture", 0, "how long TestTorture disturbs runs")
	tortureTable = flag.String("torture-table", "", "the JSON file that TestTorture writes: how often each disturbance was tried")
)

// A disturbance is a way to disturb a run, such as a kill. apply disturbs a run and then runs the
// study again in the same folder. It fails the test if that does not give the scores and intervals
// of an undisturbed run, or if the command check still finds a problem in the folder. See
// disturbedStudy in powerloss_test.go.
type disturbance struct {
	name  string
	apply func(t *testing.T, r *rand.Rand) // nil if it is not available here
	count int                              // times that it was applied
}

// TestTorture is a stress test: it disturbs runs at random moments, in every way in turn, for the
// time of the flag -torture. fullText (mutation_test.go) is a study that writes every kind of file.
func TestTorture(t *testing.T) {
	if *tortureTime == 0 {
		t.Skip("no -torture duration is given: make torture gives one")
	}
	small, full, photos := newDisturbedStudy(t, smallText), newDisturbedStudy(t, fullText), newPhotoStudy(t)
	disturbances := []*disturbance{
		{name: "SIGKILL of a run, at a random moment", apply: full.interruptions(t, "run")},
		{name: "SIGKILL of a shard, at a random moment", apply: full.interruptions(t, "shard")},
		{name: "SIGKILL of a merge, at a random moment", apply: full.interruptions(t, "merge")},
		{name: "SIGKILL of check --fix, at a random moment", apply: full.interruptions(t, "check")},
		{name: "a failing system call of the program (strace)", apply: full.failingCalls(t)},
		{name: "a failing write, sync, rename, removal or new folder", apply: full.failingChanges},
		{name: "a full disk (limit on the size of files)", apply: full.interruptions(t, "file limit")},
		{name: "a power loss in a run", apply: full.powerLosses(t)},
		{name: "a power loss in a small run", apply: small.powerLosses(t)},
		{name: "a mutated file", apply: full.mutations(t)},
		{name: "samples or weights that change under a run", apply: photos.changesUnderRun(t)},
		{name: "an error of reading samples or weights that passes (strace)", apply: photos.passingErrors(t)},
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	start := time.Now()
	for i := 0; time.Since(start) < *tortureTime && !t.Failed(); i++ {
		one := disturbances[i%len(disturbances)]
		if one.apply == nil {
			continue
		}
		one.apply(t, r)
		one.count++
	}
	type cell struct{ Value string }
	table := struct {
		Columns       []string
		Rows          []map[string]cell
		Date, Machine string
	}{Columns: []string{"disturbance", "times"}, Date: time.Now().UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%s on %d cores", time.Since(start).Round(time.Second), runtime.NumCPU())}
	all := 0
	for _, one := range disturbances {
		t.Logf("%6d  %s", one.count, one.name)
		table.Rows = append(table.Rows, map[string]cell{"disturbance": {one.name}, "times": {strconv.Itoa(one.count)}})
		all += one.count
	}
	table.Rows = append(table.Rows, map[string]cell{"disturbance": {"in all, in " + table.Machine}, "times": {strconv.Itoa(all)}})
	if t.Failed() || *tortureTable == "" {
		return
	}
	raw, err := json.MarshalIndent(table, "", " ")
	if err == nil {
		err = atomicfile.Write(*tortureTable, append(raw, '\n'))
	}
	if err != nil {
		t.Error(err)
	}
}

// program builds the command noether in the folder of the models, with the study file beside it,
// and returns its path.
func (d *disturbedStudy) program(t *testing.T) string {
	t.Helper()
	program := filepath.Join(d.dir, "noether")
	if _, err := os.Stat(program); err != nil {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/noether").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(d.dir, "study.yaml"), []byte(d.text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return program
}

// interruptions returns a disturbance that kills the program up to three times in one folder. stage
// is what is killed: "run", "shard" (a run of half of the samples), "merge" (of two shards) or
// "check" (check --fix, which repairs a folder). For "file limit" a run fails instead, since files
// may not grow above a limit.
func (d *disturbedStudy) interruptions(t *testing.T, stage string) func(t *testing.T, r *rand.Rand) {
	t.Helper()
	program := d.program(t)
	file := filepath.Join(d.dir, "study.yaml")
	typical := 2 * time.Second // duration of the stage: of the last one that ended without an error
	merge := func(out string) func(o study.Options) (*study.Result, error) {
		return func(o study.Options) (*study.Result, error) {
			return study.Merge(t.Context(), studytest.Parse(t, d.dir, d.text), []string{out}, o)
		}
	}
	shards := func(out string) {
		for i := 1; i <= 2; i++ {
			o := d.o
			o.Shard = study.Shard{Index: i, Count: 2}
			d.run(t, out, o)
		}
	}
	return func(t *testing.T, r *rand.Rand) {
		out := filepath.Join(d.dir, "killed")
		defer os.RemoveAll(out)
		run := []string{program, "run", file, "-o", out, "--save-every", "1ms", "--threads", "2"}
		args := run
		switch stage {
		case "shard":
			args = append(run, "--shard", "1/2")
		case "merge":
			shards(out)
			args = []string{program, "merge", out}
		case "check":
			d.run(t, out, d.o)
			for range 3 {
				files := filesOf(t, out)
				mutations[r.IntN(5)].change(filepath.Join(out, files[r.IntN(len(files))])) // the first five change only content
			}
			args = []string{program, "check", "--fix", out}
		case "file limit":
			limit := strconv.Itoa(1 << r.IntN(8)) // blocks of 512 bytes
			args = append([]string{"sh", "-c", "ulimit -f " + limit + `; exec "$@"`, "sh"}, run...)
		}
		for range 1 + r.IntN(3) {
			start := time.Now()
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "NOETHER_BLAS=none")   // gonum's, as in the undisturbed run
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the process that it supervises
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if stage != "file limit" {
				kill := time.AfterFunc(time.Duration(r.Int64N(int64(typical))), func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
				defer kill.Stop()
			}
			if err := cmd.Wait(); err == nil {
				typical = time.Since(start)
			}
			if t.Context().Err() != nil {
				return
			}
		}
		if stage == "merge" {
			d.checkCompletes(t, out, "SIGKILL of a merge", merge(out))
			return
		}
		what := "SIGKILL: " + stage
		if stage == "file limit" {
			what = "a limit on the size of files"
		}
		d.afterwards(t, out, what, stage == "check")
	}
}

// afterwards checks a folder after a disturbance: it runs the study again and compares the scores.
// A folder with files that were damaged on purpose (damaged) is repaired before, since a killed
// check --fix may have left some of the damage.
func (d *disturbedStudy) afterwards(t *testing.T, out, what string, damaged bool) {
	t.Helper()
	again := func(o study.Options) (*study.Result, error) {
		return study.Run(t.Context(), studytest.Parse(t, d.dir, d.text), out, o)
	}
	if damaged {
		mustCheck(t, out, true, d.o)
	}
	if _, err := os.Stat(filepath.Join(out, "cells")); err != nil || damaged {
		d.checkCompletes(t, out, what, again)
		return
	}
	d.checkResume(t, out, what)
}

// failingCalls returns a disturbance that makes a system call of the program fail by strace's fault
// injection, or nil if strace does not work here.
func (d *disturbedStudy) failingCalls(t *testing.T) func(t *testing.T, r *rand.Rand) {
	t.Helper()
	if err := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "true").Run(); err != nil {
		t.Logf("system calls are not made to fail: strace: %v", err)
		return nil
	}
	program, file := d.program(t), filepath.Join(d.dir, "study.yaml")
	calls := []string{"fsync", "renameat", "openat", "write", "read", "pwrite64", "pread64", "mkdirat", "unlinkat", "getdents64", "newfstatat", "close"}
	causes := []string{"EIO", "ENOSPC", "EACCES", "EMFILE", "EINTR", "EDQUOT", "ENOMEM"}
	return func(t *testing.T, r *rand.Rand) {
		out := filepath.Join(d.dir, "failed")
		defer os.RemoveAll(out)
		call, cause := calls[r.IntN(len(calls))], causes[r.IntN(len(causes))]
		when := strconv.Itoa(1 + r.IntN(60)) // which call fails
		if r.IntN(2) == 0 {
			when += "+" + strconv.Itoa(1+r.IntN(20)) // N+M: call N and every M-th after it
		}
		inject := fmt.Sprintf("inject=%s:error=%s:when=%s", call, cause, when)
		cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-o", "/dev/null", "-P", out, "-P", filepath.Join(out, "cells"),
			"-e", "trace="+call, "-e", inject, program, "run", file, "-o", out, "--save-every", "1ms", "--threads", "2")
		if r.IntN(2) == 0 { // without -P: calls on all files, not only in the two folders
			cmd.Args = append([]string{"strace", "-f", "-qq", "-o", "/dev/null"}, cmd.Args[9:]...)
		}
		cmd.Env = append(os.Environ(), "NOETHER_BLAS=none")
		// The program may hang if Go's runtime cannot make a call. It is killed with strace, else it
		// would go on without it, beside the next run.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		kill := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer kill.Stop()
		_ = cmd.Run() // the program may fail or finish; either is correct
		d.afterwards(t, out, inject, false)
	}
}

// failingChanges is a disturbance that makes one change of the folder fail, or that one and all
// later ones, as on a dead disk. A run of fewer changes is not disturbed.
func (d *disturbedStudy) failingChanges(t *testing.T, r *rand.Rand) {
	causes := []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EACCES}
	change, deadDisk := 1+r.IntN(600), r.IntN(2) == 0
	d.failThenRun(t, change, deadDisk, causes[r.IntN(len(causes))])
}

// powerLosses returns a disturbance that replays the recorded changes of a run's folder up to a
// random one, and loses what was not synced.
func (d *disturbedStudy) powerLosses(t *testing.T) func(t *testing.T, r *rand.Rand) {
	t.Helper()
	recorded := filepath.Join(d.dir, "recorded")
	log := record(t, recorded, func() { d.run(t, recorded, d.saveAlways()) })
	return func(t *testing.T, r *rand.Rand) {
		out := filepath.Join(d.dir, "lost")
		defer os.RemoveAll(out)
		disk, n := log.Replay(), r.IntN(len(log.Changes)+1)
		for range n {
			if _, err := disk.Next(); err != nil {
				t.Fatal(err)
			}
		}
		loss := powerloss.Losses[r.IntN(len(powerloss.Losses))]
		if _, err := disk.Write(out, loss, r); err != nil {
			t.Fatal(err)
		}
		d.afterwards(t, out, fmt.Sprintf("a power loss after %d of %d changes, %v", n, len(log.Changes), loss), false)
	}
}

// mutations returns a disturbance that mutates a random file of a finished run or of a stopped one.
// The list mutations has the ways, such as a bit flipped or a file removed.
func (d *disturbedStudy) mutations(t *testing.T) func(t *testing.T, r *rand.Rand) {
	t.Helper()
	folders := []string{d.finished(t), d.stopped(t, "feeding", func(p study.Progress) bool { return p.Samples >= 16 })}
	return func(t *testing.T, r *rand.Rand) {
		folder := folders[r.IntN(len(folders))]
		files := filesOf(t, folder)
		fix := r.IntN(2) == 0 // whether check --fix comes before the next run
		d.mutate(t, folder, files[r.IntN(len(files))], mutations[r.IntN(len(mutations))], fix)
	}
}
