package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/html"
	"github.com/noether-ml/noether/internal/report/terminal"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

// showResult writes the report (the page report.html) into the run folder out, which holds the
// results of a study, and prints the scores, even if the report cannot be written.
func showResult(result *study.Result, out string, p printFlags) error {
	machine.AllowGarbage() // lifts the limit of BoundGarbage until the process ends
	return showPage(result, out, p, readAttached(out, result.Cells))
}

// showPage does what showResult does. attached returns the page without the scores.
func showPage(result *study.Result, out string, p printFlags, attached func() html.Run) error {
	written := make(chan error, 1)
	go func() {
		err := writePage(result, out, attached)
		if err != nil {
			err = fmt.Errorf("%w; the scores are kept, and noether report %s writes the report again", err, out)
		}
		written <- err
	}()
	failed := printScores(result, p)
	unwritten := <-written
	if failed == nil && !p.json {
		printPaths(result, out, unwritten == nil)
	}
	return errors.Join(failed, unwritten)
}

// writePage writes the report, unless the run computed nothing new and the folder has the report of
// the same results by the same version of the program. source is a checksum of the results.
func writePage(result *study.Result, out string, attached func() html.Run) error {
	file := filepath.Join(out, "report.html")
	source, err := study.PageSource(out)
	if err == nil {
		source += " " + version()
	}
	if result.Unchanged && html.MadeFrom(file, source) {
		return nil
	}
	page := attached()
	page.Rows, page.Record, page.Source = result.Rows, result.Record, source
	return atomicfile.WriteFunc(file, func(w io.Writer) error { return page.WritePage(w) })
}

// readAttached returns a function that reads what a report shows besides the scores. cells are the
// results of the run, one Cell for each unit of work: a measure of one model on one data set under
// one transformation value in one trial (repetition of all random draws). If cells is nil, the
// function reads them from the folder. Files may still be read when it returns.
func readAttached(out string, cells []scores.Cell) func() html.Run {
	return func() html.Run {
		attachments := make(chan report.Attachments, 1)
		go func() { attachments <- report.ReadAttachments(out) }()
		replicates, err := replicatesOf(cells, out)
		return html.Run{Attachments: report.Attachments{Replicates: replicates}, Attached: func() report.Attachments {
			shown := <-attachments
			shown.Replicates = replicates
			if err != nil {
				shown.Notes = append(shown.Notes, "differences are not paired by sample: "+err.Error())
			}
			return shown
		}}
	}
}

// replicatesOf returns the jackknife replicates of the scores of cells, from which a report
// computes intervals of differences that are paired by sample. If cells is nil, it reads the cells
// of the run folder out.
func replicatesOf(cells []scores.Cell, out string) (*report.Replicates, error) {
	if cells == nil {
		var err error
		if cells, _, err = study.ReadCells(out); err != nil {
			return nil, err
		}
	}
	return report.NewReplicates(cells), nil
}

// printScores prints tables of the scores, or with --json the whole result.
func printScores(result *study.Result, p printFlags) error {
	if p.json {
		return json.NewEncoder(os.Stdout).Encode(result)
	}
	width, colour := terminalSize(os.Stdout)
	return terminal.Write(os.Stdout, result.Rows, result.Record, terminal.Options{Width: width, Colour: colour, All: p.all})
}

// printPaths prints the path of the scores, and that of the report if it was written.
func printPaths(result *study.Result, out string, reported bool) {
	fmt.Println()
	if result.Record.Finished != nil {
		fmt.Println("scores ", filepath.Join(out, "scores.csv"))
	}
	if reported {
		fmt.Println("report ", filepath.Join(out, "report.html"))
	}
}
