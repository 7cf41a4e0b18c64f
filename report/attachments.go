package report

import "os"

// Attachments are what a run folder holds for the eye besides its scores. A page does without any
// of them.
type Attachments struct {
	Distributions []Distribution
	Curves        []TuningCurve
	Images        []Image
	Notes         []string // what is left out and why; they stand among the warnings of the page
}

// ReadAttachments reads those of a run folder. What cannot be read becomes a note: a report is not
// held up by a damaged image.
func ReadAttachments(dir string) Attachments {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Attachments{Notes: []string{err.Error()}}
	}
	defer root.Close()
	return AttachmentsIn(root)
}

// AttachmentsIn reads those of an open run folder. A link in the folder leads to nothing outside of
// it.
func AttachmentsIn(root *os.Root) Attachments {
	var a Attachments
	note := func(notes []string, err error) {
		a.Notes = append(a.Notes, notes...)
		if err != nil {
			a.Notes = append(a.Notes, err.Error())
		}
	}
	samples, notes, err := readSamples(root)
	note(notes, err)
	units, notes, err := readUnits(root)
	note(notes, err)
	a.Distributions = append(samples, units...)
	a.Curves, notes, err = readCurves(root)
	note(notes, err)
	a.Images, notes, err = readImages(root)
	note(notes, err)
	return a
}
