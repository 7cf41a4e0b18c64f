package results

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/scores"
)

// Unchanged returns the result of the run folder if the program has nothing to write there: an
// earlier run of this version finished the same study, and neither records nor tables nor pictures
// were changed since. Else it returns nil. Call it after Resume or a merge.
func (r *Writer) Unchanged() *Result {
	if !r.sameRun() || !r.sameRecords() {
		return nil
	}
	text, err := r.Plan.Resolved()
	if err != nil {
		return nil
	}
	if old, err := os.ReadFile(r.Folder.Path("study.yaml")); err != nil || !bytes.Equal(old, []byte(checksum.Prepend(text))) {
		return nil
	}
	// Images beside the models may have changed.
	if r.Plan.Study.AsksForImages() {
		if r.copyModelImages() != nil {
			return nil
		}
	} else if !r.sameModelImages() {
		return nil
	}
	if files, err := r.Folder.sumFiles(); err != nil || !maps.Equal(files, r.before.Files) {
		return nil
	}
	defer allowGarbage(r.Plan)() // less garbage collection while many records are read
	rows, err := r.Folder.readScores()
	if err != nil {
		return nil
	}
	// Failures, saved progress and checkpoints that cells share are of no use after the last cell.
	if r.clearStates() != nil {
		return nil
	}
	record := *r.before
	record.Resolved = text
	return &Result{Rows: rows, Record: record, Unchanged: true}
}

// sameRun reports whether the earlier run was finished without failures, by this version of the
// program.
func (r *Writer) sameRun() bool {
	b := r.before
	return b != nil && b.Finished != nil && b.Records != "" && b.Noether == r.Options.Version && b.Noether != "" &&
		len(b.Failed) == 0 && len(b.Missing) == 0 && len(r.failures.Failed) == 0
}

// sameRecords reports whether the records of all cells are those that the earlier run made its
// tables from.
func (r *Writer) sameRecords() bool {
	if len(r.before.Keys) != len(r.Plan.Cells) {
		return false
	}
	sums := make([]uint32, len(r.Plan.Cells))
	for i, c := range r.Plan.Cells {
		record, kept := r.keptRecord(c)
		if !kept || c.Key != r.before.Keys[i] {
			return false
		}
		sums[i] = record.sum
	}
	return sumOfSums(sums) == r.before.Records
}

// PageSource returns a checksum of the files that the report of a finished run is made from: of
// run.json, which has the checksums of tables and records, and of all pictures.
func PageSource(dir string) (string, error) {
	var all bytes.Buffer
	add := func(file string) error {
		sum, err := scores.SumFile(filepath.Join(dir, file))
		fmt.Fprintln(&all, file, sum)
		return err
	}
	if err := add("run.json"); err != nil {
		return "", err
	}
	if err := optional(add(pictures.Archive)); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "pictures")); os.IsNotExist(err) {
		return scores.SumOf(all.Bytes()).CRC32C, nil
	}
	err := fs.WalkDir(os.DirFS(dir), "pictures", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return add(file)
	})
	return scores.SumOf(all.Bytes()).CRC32C, err
}
