"""`python -m workshop.mutants [exercise …]`: judge the mutants of the exercises named, or of all."""

import sys

from course_utils.errors import CourseError
from workshop.mutants.campaign import main

try:
    sys.exit(main())
except CourseError as error:
    sys.exit(str(error))
