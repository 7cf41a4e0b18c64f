//go:build unix

// Command bench measures tables of docs/results/performance.md and stores them in
// internal/bench/results.
//
//	NOETHER_TESTDATA=/data PEERS=/peers go run ./internal/bench [-rounds 3] [TABLE ...]
//
// Each benchmark runs in a process of its own. NOETHER_TESTDATA is the folder of test data. PEERS
// is a folder outside this repository. It has bench.py and similarity.py, which hold reference
// implementations in PyTorch and numpy, compiled.py, the same by torch.compile, nets.py, which
// builds networks, and export.py, which prepares them for export; PYTHON is the interpreter that
// runs them. Without it the columns of PyTorch and numpy, and the rows of exported networks, stay empty. In
// each round, Noether and its peer, the reference implementation of the same task, are measured one
// after the other. A table has the median over the rounds, the smallest and the largest value, and
// the peak memory. tables.yaml describes the tables, and networks.txt lists the networks of two of
// them.
//
// Without names of tables, all are measured but those that are marked as slow in tables.yaml.
// Tables that are not measured keep their stored results. BINARIES may name a folder with the
// program noether and with test binaries (internal-study-run.test for package internal/study/run),
// which are then not built: for machines without Go.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	rounds := flag.Int("rounds", 3, "how often each row is measured")
	results := flag.String("results", "internal/bench/results", "the folder of the stored results")
	remark := flag.String("remark", "", "a remark to store with the machine, such as \"idle\"")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *results, *remark, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rounds int, folder, remark string, names []string) error {
	tables, err := readTables()
	if err != nil {
		return err
	}
	chosen, err := choose(tables, names)
	if err != nil {
		return err
	}
	r, err := newRunner()
	if err != nil {
		return err
	}
	defer r.remove()
	for _, t := range chosen {
		stored, err := t.measure(ctx, r, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		stored.Date = time.Now().UTC().Format(time.DateOnly)
		stored.Machine = strings.TrimSuffix(machineText()+"; "+remark, "; ")
		text, err := json.MarshalIndent(stored, "", " ")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(filepath.Join(folder, t.Name+".json"), append(text, '\n')); err != nil {
			return err
		}
		log.Printf("wrote %s", filepath.Join(folder, t.Name+".json"))
	}
	return nil
}

// choose returns the tables of the given names; without names, those that are not slow. An unknown
// name is an error.
func choose(tables []table, names []string) ([]table, error) {
	var chosen []table
	for _, t := range tables {
		if slices.Contains(names, t.Name) || len(names) == 0 && !t.Slow {
			chosen = append(chosen, t)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(tables, func(t table) bool { return t.Name == name }) {
			var known []string
			for _, t := range tables {
				known = append(known, t.Name)
			}
			return nil, fmt.Errorf("no table %q; available: %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// machineText describes the machine: the number of logical CPUs, which it calls cores, the
// processor and the version of Go.
func machineText() string {
	model := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores of %s, %s", runtime.NumCPU(), model, runtime.Version())
}
