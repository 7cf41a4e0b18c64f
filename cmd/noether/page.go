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
	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/html"
	"github.com/noether-ml/noether/internal/report/terminal"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

// showResult prints the scores even if the report cannot be written.
func showResult(result *study.Result, out string, p printFlags) error {
	machine.AllowGarbage()
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
	failed := printScores(result, out, p)
	unwritten := <-written
	if failed == nil && !p.json {
		printPaths(result, out, unwritten == nil)
	}
	return errors.Join(failed, unwritten)
}

// writePage keeps a report of the same results by the same version. source is a checksum of the
// results.
func writePage(result *study.Result, out string, attached func() html.Run) error {
	file := filepath.Join(out, "report.html")
	source, err := study.PageSource(out)
	if err == nil {
		source += " " + version()
		if sum, err := scores.SumFile(filepath.Join(out, policy.SummaryFile)); err == nil {
			source += " " + sum.CRC32C
		}
	}
	if result.Unchanged && html.MadeFrom(file, source) {
		return nil
	}
	page := attached()
	page.Rows, page.Record, page.Source = result.Rows, result.Record, source
	return atomicfile.WriteFunc(file, func(w io.Writer) error { return page.WritePage(w) })
}

// readAttached returns a function that reads attachments, and the cells if nil. Files may still be
// read when it returns.
func readAttached(out string, cells []scores.Cell) func() html.Run {
	return func() html.Run {
		attachments := make(chan report.Attachments, 1)
		go func() { attachments <- report.ReadAttachments(out) }()
		var replicates *report.Replicates
		var err error
		if cells == nil {
			cells, _, err = study.ReadCells(out)
		}
		if err == nil {
			replicates = report.NewReplicates(cells)
		}
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

// printScores prints tables of the scores, and breaking points if the study has tolerances, or with
// --json the whole result. out is the run folder.
func printScores(result *study.Result, out string, p printFlags) error {
	if p.json {
		return json.NewEncoder(os.Stdout).Encode(result)
	}
	width, colour := terminalSize(os.Stdout)
	o := terminal.Options{Width: width, Colour: colour, All: p.all}
	if report.NamesLayers(result.Rows) {
		cells := result.Cells
		if cells == nil {
			cells, _, _ = study.ReadCells(out) // without them differences are not paired by sample
		}
		o.Replicates = report.NewReplicates(cells)
	}
	if err := terminal.Write(os.Stdout, result.Rows, result.Record, o); err != nil {
		return err
	}
	tolerances, zero := ownTolerances(result)
	if len(tolerances) == 0 || result.Record.Finished == nil {
		return nil
	}
	cells := result.Cells
	if cells == nil {
		var err error
		if cells, _, err = study.ReadCells(out); err != nil {
			return err
		}
	}
	points, err := breakingPoints(cells, tolerances, zero)
	if err != nil {
		note("breaking points: " + err.Error())
		return nil
	}
	fmt.Fprintln(stdout)
	return printBreakingPoints(points)
}

// printPaths prints the path of the scores, and that of the report if it was written.
func printPaths(result *study.Result, out string, reported bool) {
	fmt.Fprintln(stdout)
	if result.Record.Finished != nil {
		fmt.Fprintln(stdout, "scores ", filepath.Join(out, "scores.csv"))
	}
	if reported {
		fmt.Fprintln(stdout, "report ", filepath.Join(out, "report.html"))
	}
}
