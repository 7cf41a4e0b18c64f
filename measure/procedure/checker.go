package procedure

import (
	"fmt"
	"strings"
)

// A Checker is a Procedure that can report, before its job runs, that a setting names something
// that the data do not have.
type Checker interface {
	// Check returns an *Unknown, or nil. Like Skip it reads no samples.
	Check(j *Job) error
}

// An Unknown is the error of a setting that names something that does not exist.
type Unknown struct {
	Key   []string // path of the setting, such as test, factor
	What  string   // the kind of name, such as factor
	Name  string
	Known []string // the valid names
	// OtherData reports that the setting may be meant for other data of the study.
	OtherData bool
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("%s: no %s %q: there are %s", strings.Join(e.Key, "."), e.What, e.Name, strings.Join(e.Known, ", "))
}
