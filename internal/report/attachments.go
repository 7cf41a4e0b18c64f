package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/scores"
)

// Attachments are what a report shows of a run folder besides scores. All are optional.
type Attachments struct {
	Distributions []Distribution // histograms over samples, or over the units of a layer
	Omitted       []Omission     // distributions that are left out, by measure
	Curves        []TuningCurve  // responses of single units to transformed versions of an input
	Images        []Image
	SheetValues   []SheetValue    // of the samples on contact sheets
	SampleSheets  []SampleSheet   // predictions for single samples
	MapSheets     []MapSheet      // drawings of feature maps
	Replicates    *Replicates     // of the jackknife, for intervals of differences; nil if unknown
	Verdict       *policy.Summary // of a policy on these scores; nil without one
	Notes         []string        // what is left out and why; shown among the warnings of the page
}

// ReadAttachments reads all but Replicates, which come from cells. A file that cannot be read gives
// a note.
func ReadAttachments(dir string) Attachments {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Attachments{Notes: []string{err.Error()}}
	}
	defer root.Close()
	return AttachmentsIn(root)
}

// AttachmentsIn reads the attachments of an open run folder except for Replicates. Symbolic links
// out of the folder are not followed.
func AttachmentsIn(root *os.Root) Attachments {
	var a Attachments
	note := func(notes []string, err error) {
		a.Notes = append(a.Notes, notes...)
		if err != nil {
			a.Notes = append(a.Notes, err.Error())
		}
	}
	files, archiveErr := pictures.Open(root.FS())
	if archiveErr != nil {
		note(nil, archiveErr)
	}
	defer files.Close()
	images, imageNotes, imagesErr := readImages(files)
	sheets := sheetsOf(images)
	samples, sampleOmissions, err := readSamples(root, sheets)
	note(nil, err)
	units, unitOmissions, err := readUnits(root)
	note(nil, err)
	a.Distributions, a.Omitted = append(samples, units...), append(sampleOmissions, unitOmissions...)
	var notes []string
	a.Curves, notes, err = readCurves(root)
	note(notes, err)
	a.Images, a.SheetValues = images, sheets.values
	note(imageNotes, imagesErr)
	a.SampleSheets, notes, err = readSampleSheets(files)
	note(notes, err)
	a.MapSheets, notes, err = readMapSheets(files)
	note(notes, err)
	a.Verdict, err = readVerdict(root)
	note(nil, err)
	return a
}

// readVerdict reads the verdict of a policy, unless it is about other scores than those of the run.
func readVerdict(root *os.Root) (*policy.Summary, error) {
	data, err := root.ReadFile(policy.SummaryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := policy.ParseSummary(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", policy.SummaryFile, err)
	}
	record, err := root.ReadFile("run.json")
	if err != nil || scores.SumOf(record).CRC32C != s.Run {
		return nil, fmt.Errorf("%s is about other scores, and is left out: noether policy judges again", policy.SummaryFile)
	}
	return s, nil
}
