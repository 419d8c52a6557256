"""Jobs of a study in this process, as they come: starting others takes longer than small trainings."""

from calibrant.studying.run_job import do


class Here:
    """An executor without processes."""

    slots = 1

    def __init__(self, folder):
        self.folder, self.outcomes = folder, []

    def start(self, job):
        self.outcomes.append(do(job, self.folder))

    def wait(self):
        ended, self.outcomes = self.outcomes, []
        return ended

    def close(self):
        pass
