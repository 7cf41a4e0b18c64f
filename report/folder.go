package report

// Attachments are what a run folder holds for the eye besides its scores. A page does without any of them.
type Attachments struct {
	Distributions []Distribution
	Pictures      []Picture
	Notes         []string // what is left out and why; they stand among the warnings of the page
}

// ReadAttachments reads those of a run folder. What cannot be read becomes a note: a report is not held up by a damaged picture.
func ReadAttachments(dir string) Attachments {
	var a Attachments
	note := func(notes []string, err error) {
		a.Notes = append(a.Notes, notes...)
		if err != nil {
			a.Notes = append(a.Notes, err.Error())
		}
	}
	var notes []string
	var err error
	a.Distributions, notes, err = ReadDistributions(dir)
	note(notes, err)
	units, notes, err := ReadUnits(dir)
	note(notes, err)
	a.Distributions = append(a.Distributions, units...)
	a.Pictures, notes, err = ReadPictures(dir)
	note(notes, err)
	return a
}
