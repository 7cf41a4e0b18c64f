package procedure

import (
	"fmt"
	"strings"
)

// A Checker is a Procedure that can tell, before its job is run, that a setting names what the data do not have.
type Checker interface {
	// Check returns an *Unknown, or nil. Like Skip it reads no samples.
	Check(j *Job) error
}

// An Unknown is the error of a setting that names what is not there.
type Unknown struct {
	Key   []string // of the setting, and of what is within it: test, factor
	What  string   // what is named: factor
	Word  string
	Known []string // what could be named
	// Elsewhere says that the setting may be meant for other data of the study.
	Elsewhere bool
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("%s: no %s %q: there are %s", strings.Join(e.Key, "."), e.What, e.Word, strings.Join(e.Known, ", "))
}
