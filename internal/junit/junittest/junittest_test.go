package junittest

import "testing"

// TestViolations checks that the validator finds what the schema forbids.
func TestViolations(t *testing.T) {
	t.Parallel()
	const good = `<testsuite name="m" tests="1" failures="0" errors="0">`
	for file, valid := range map[string]bool{
		`<testsuites/>`: true,
		`<testsuites name="n">` + good + `<testcase name="c" classname="m"><failure message="w" type="fail"></failure></testcase></testsuite></testsuites>`: true,
		`<testsuites>` + good + `<testcase name="c"><system-out>3</system-out></testcase><testcase name="d"/></testsuite></testsuites>` + "\n":              true,
		`<testsuites><testsuite name="m" tests="1" failures="0"/></testsuites>`:                                                                             false, // no errors
		`<testsuites>` + good + `<testcase classname="m"/></testsuite></testsuites>`:                                                                        false, // no name
		`<testsuites>` + good + `<testcase name="c" score="1"/></testsuite></testsuites>`:                                                                   false, // attribute
		`<testsuites>` + good + `<failure/></testsuite></testsuites>`:                                                                                       false, // place
		`<testsuites>` + good + `<testcase name="c">text</testcase></testsuite></testsuites>`:                                                               false, // text
		`<testsuites><testcase name="c"/></testsuites>`:                                                                                                     false,
		`<testsuites><case/></testsuites>`:                                                                                                                  false,
		`<testsuites><testsuite name="m" tests="1" failures="0" errors="0" time="long"/></testsuites>`:                                                      false,
		`<testsuites>` + good + `<testcase name="c"><system-out><b/></system-out></testcase></testsuite></testsuites>`:                                      false,
		`<testsuites></testsuites><testsuites/>`:                                                                                                            false,
	} {
		if err := Validate([]byte(file)); (err == nil) != valid {
			t.Errorf("%s: %v", file, err)
		}
	}
}
